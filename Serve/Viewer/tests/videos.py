"""A video for the tests of the page: one VP8 picture over and over, each behind as many bytes of nothing as are asked for."""
import base64
import os
import struct


def element(name, content):
    """An element of EBML, its length in eight bytes."""
    return bytes.fromhex(name) + (1 << 56 | len(content)).to_bytes(8, "big") + content


def picture(tab):
    """A VP8 frame, which the browser makes: what a WebP file has in it."""
    webp = base64.b64decode(tab.evaluate("""() => {
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [64, 48];
        canvas.getContext('2d', { alpha: false }).fillRect(0, 0, 64, 48);
        return canvas.toDataURL('image/webp', 0.8).split(',')[1];
    }"""))
    at = webp.index(b"VP8 ")
    return webp[at + 8:at + 8 + int.from_bytes(webp[at + 4:at + 8], "little")]


def webm(frame, seconds, padding):
    """A video of one picture each second, with `padding` random bytes behind each."""
    number = lambda name, value: element(name, value.to_bytes(4, "big"))
    clusters = [element("1f43b675", number("e7", 1000 * second) + element("a3", b"\x81\0\0\x80" + frame)) + element("ec", os.urandom(padding)) for second in range(seconds)]
    info = element("1549a966", number("2ad7b1", 1_000_000) + element("4489", struct.pack(">d", 1000 * seconds)) + element("4d80", b"carpack") + element("5741", b"carpack"))
    track = number("d7", 1) + number("73c5", 1) + number("83", 1) + element("86", b"V_VP8") + element("e0", number("b0", 64) + number("ba", 48))
    tracks = element("1654ae6b", element("ae", track))

    def cues(start):
        points, place = b"", start
        for second, cluster in enumerate(clusters):
            points += element("bb", number("b3", 1000 * second) + element("b7", number("f7", 1) + number("f1", place)))
            place += len(cluster)
        return element("1c53bb6b", points)
    before = len(info) + len(tracks)
    head = element("1a45dfa3", number("4286", 1) + number("42f7", 1) + number("42f2", 4) + number("42f3", 8) + element("4282", b"webm") + number("4287", 2) + number("4285", 2))
    return head + element("18538067", info + tracks + cues(before + len(cues(0))) + b"".join(clusters))
