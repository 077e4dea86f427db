import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { listFolder } from "../archive/opening.js";
import { URLSource } from "../archive/source.js";

const LENGTH = 1 << 20;
const content = (seed) => Buffer.alloc(LENGTH, seed);

/** A file on loopback, as `headers` describe it; `served` can be replaced at any time. */
async function serving(served, use) {
  const seen = [];
  const server = createServer((request, answer) => {
    seen.push(request.headers);
    const { bytes, headers, obeys } = served;
    if (obeys && request.headers["if-match"] && request.headers["if-match"] !== headers.ETag) return answer.writeHead(412).end();
    const [, start, end] = /bytes=(\d+)-(\d+)/.exec(request.headers.range).map(Number);
    if (start >= bytes.length) return answer.writeHead(416).end();
    const part = bytes.subarray(start, end + 1);
    answer.writeHead(206, { ...headers, "Content-Range": `bytes ${start}-${start + part.length - 1}/${bytes.length}` }).end(part);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${server.address().port}/`, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("ranges are asked for on condition that the file is the one that was opened", async () => {
  await serving({ bytes: content(1), headers: { ETag: '"one"' }, obeys: true }, async (url, seen) => {
    const source = await URLSource.open(`${url}a.car.zst`);
    assert.deepEqual(await source.read(5, 100_000), new Uint8Array(content(1).subarray(5, 100_000)));
    assert.equal(seen[0]["if-match"], undefined);
    assert.equal(seen[1]["if-match"], '"one"');
  });
});

const old = "Mon, 23 Nov 2026 18:00:00 GMT";
const later = "Mon, 23 Nov 2026 18:00:01 GMT";
for (const [name, before, after] of [
  ["a server that obeys If-Match", { headers: { ETag: '"one"' }, obeys: true }, { headers: { ETag: '"two"' }, obeys: true }],
  ["a server that does not", { headers: { ETag: '"one"' } }, { headers: { ETag: '"two"' } }],
  ["a server with weak tags", { headers: { ETag: 'W/"one"' } }, { headers: { ETag: 'W/"two"' } }],
  ["a server that says when the file was changed", { headers: { "Last-Modified": old } }, { headers: { "Last-Modified": later } }],
  ["a server that says the length only", { headers: {} }, { headers: {}, bytes: Buffer.alloc(LENGTH + 1, 2) }],
  ["a server whose file became shorter", { headers: {} }, { headers: {}, bytes: Buffer.alloc(100, 2) }],
]) {
  test(`an archive that is replaced between two ranges is never mixed: ${name}`, async () => {
    const served = { bytes: content(1), ...before };
    await serving(served, async (url) => {
      const source = await URLSource.open(`${url}a.car.zst`);
      await source.read(0, 100_000);
      Object.assign(served, { bytes: content(2) }, after);
      await assert.rejects(source.read(200_000, 300_000), /replaced.*open it again/);
    });
  });
}

test("a weak tag is no condition", async () => {
  await serving({ bytes: content(1), headers: { ETag: 'W/"one"' } }, async (url, seen) => {
    const source = await URLSource.open(`${url}a.car.zst`);
    await source.read(0, 100_000);
    assert.equal(seen[1]["if-match"], undefined);
  });
});

test("a name with a stray % opens, and others are decoded", async () => {
  await serving({ bytes: content(1), headers: {} }, async (url) => {
    assert.equal((await URLSource.open(`${url}100%.car.zst`)).name, "100%.car.zst");
    assert.equal((await URLSource.open(`${url}a%20b.car.zst`)).name, "a b.car.zst");
  });
});

test("of a server that sends more than the range it was asked for no more is read", async () => {
  let [sent, asked] = [0, 0];
  const server = createServer((request, answer) => {
    const [, start, end] = /bytes=(\d+)-(\d+)/.exec(request.headers.range).map(Number);
    const size = 1 << 30;
    answer.writeHead(206, { "Content-Range": `bytes ${start}-${end}/${size}` });
    // As the first request, or the second, is answered without an end.
    if (asked++ !== served) return answer.end(Buffer.alloc(end - start + 1));
    const more = () => {
      while (!answer.destroyed && answer.write(Buffer.alloc(1 << 16))) sent += 1 << 16;
    };
    answer.on("drain", more);
    more();
  });
  let served = 0;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${server.address().port}/a.car.zst`;
    await assert.rejects(URLSource.open(url), /sent more than it was asked for/);
    [served, asked] = [1, 0];
    const source = await URLSource.open(url);
    await assert.rejects(source.read(100_000, 200_000), /sent more than it was asked for/);
    // What was on its way fills the buffers of the network, and no more.
    assert.ok(sent < 64 << 20, `${sent}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

for (const [length, opens] of [[LENGTH, true], [(128 << 20) + 1, false]]) {
  test(`a server without ranges is believed no length: ${length} bytes, compressed on their way`, async () => {
    const sent = gzipSync(Buffer.alloc(length, 7));
    // Where other tests have the cores, seconds may pass before the answer is read.
    const server = createServer({ keepAliveTimeout: 60_000 }, (_, answer) => answer.writeHead(200, { "Content-Encoding": "gzip", "Content-Length": sent.length }).end(sent));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const opening = URLSource.open(`http://127.0.0.1:${server.address().port}/a.car`);
      if (opens) assert.equal((await opening).size, length);
      else await assert.rejects(opening, /does not answer requests for a part/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
}

test("of a folder's listing that does not end only the beginning is read", async () => {
  const server = createServer((_, answer) => {
    answer.write('<a href="one.car.zst">');
    const more = () => {
      while (!answer.destroyed && answer.write(`<a href="README">${" ".repeat(1 << 16)}`));
    };
    answer.on("drain", more);
    more();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${server.address().port}/`;
    assert.deepEqual(await listFolder(url), [`${url}one.car.zst`]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
