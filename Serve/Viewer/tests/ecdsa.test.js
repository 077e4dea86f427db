import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import test from "node:test";
import { PublicKey } from "../archive/ecdsa.js";

const corpus = process.env.CARPACK_CORPUS;
const vectors = `${corpus}/crypto/wycheproof-atproto.json`;

test("Wycheproof's signatures are accepted and rejected as they have to be", { skip: !corpus || !existsSync(vectors) }, () => {
  const all = JSON.parse(readFileSync(vectors, "utf8"));
  const counts = { accept: 0, reject: 0 };
  for (const one of all) {
    const key = PublicKey.fromDIDKey(one.did_key);
    const isValid = key !== null && key.verifies(Buffer.from(one.sig_hex, "hex"), Buffer.from(one.msg_hex, "hex"));
    assert.equal(isValid, one.atproto_expected === "accept", `${one.file} ${one.tcId}: ${one.comment}`);
    counts[one.atproto_expected]++;
  }
  assert.ok(counts.accept > 50 && counts.reject > 50, JSON.stringify(counts));
});

const ORDERS = {
  secp256k1: 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n,
  prime256v1: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
};

for (const [name, curve] of [["secp256k1", "k256"], ["prime256v1", "p256"]]) {
  test(`signatures that OpenSSL makes on ${name} hold in their lower form only, for their message and key only`, () => {
    for (let i = 0; i < 6; i++) {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: name });
      const { x, y } = publicKey.export({ format: "jwk" });
      const point = Uint8Array.from([4, ...Buffer.from(x, "base64url"), ...Buffer.from(y, "base64url")]);
      const key = PublicKey.fromLegacy(toBase58(point), curve);
      const compressed = PublicKey.fromLegacy(toBase58(Uint8Array.from([2 | point[64] & 1, ...point.subarray(1, 33)])), curve);
      assert.equal(compressed.id, key.id);
      const message = Buffer.from(`message ${i}`);
      const made = sign("sha256", message, { key: privateKey, dsaEncoding: "ieee-p1363" });
      const s = BigInt(`0x${made.subarray(32).toString("hex")}`);
      const other = Buffer.concat([made.subarray(0, 32), Buffer.from((ORDERS[name] - s).toString(16).padStart(64, "0"), "hex")]);
      const [low, high] = s <= ORDERS[name] / 2n ? [made, other] : [other, made];
      assert.ok(key.verifies(low, message));
      assert.ok(!key.verifies(high, message));
      assert.ok(!key.verifies(low, Buffer.from("another message")));
      assert.ok(!key.verifies(low.subarray(1), message));
      assert.ok(!key.verifies(new Uint8Array(64), message));
      low[i * 9] ^= 1;
      assert.ok(!key.verifies(low, message));
    }
  });
}

test("what is no key is none", () => {
  const good = "zQ3shs3EYz3yq8zUc3RxMep1sPM4JDBRKJfz7P8nebo2uos98";
  assert.ok(PublicKey.fromMultikey(good));
  for (const text of ["", "z", good.slice(1), good.slice(0, -1), `${good}1`, good.replace("3", "0"), 7, null, `z${"1".repeat(5000)}`]) {
    assert.equal(PublicKey.fromMultikey(text), null, String(text));
  }
  // x = 5 is no point of secp256k1; a point of one curve lies beside the other.
  const beside = Uint8Array.from([2, ...new Uint8Array(31), 5]);
  assert.equal(PublicKey.fromLegacy(toBase58(beside), "k256"), null);
});

function toBase58(bytes) {
  let value = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (; value > 0n; value /= 58n) text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[Number(value % 58n)] + text;
  return `z${text}`;
}
