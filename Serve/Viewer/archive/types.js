// Media types, by the first bytes of a blob: what a record calls it does not count.

/** The media type of an image, video, sound or captions; the one of any bytes for the rest. */
export function typeOf(bytes) {
  const text = String.fromCharCode(...bytes.subarray(0, 16));
  if (text.startsWith("\x89PNG")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (text.startsWith("GIF8")) return "image/gif";
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "image/webp";
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WAVE") return "audio/wav";
  if (text.slice(4, 8) === "ftyp") return text.slice(8, 12).startsWith("avi") ? "image/avif" : "video/mp4";
  if (text.startsWith("\x1a\x45\xdf\xa3")) return "video/webm";
  if (text.startsWith("OggS")) return "audio/ogg";
  if (text.startsWith("ID3") || text.startsWith("\xff\xfb")) return "audio/mpeg";
  if (text.startsWith("WEBVTT")) return "text/vtt";
  if (/^\s*(<\?xml|<svg|<!--)/.test(text)) return "image/svg+xml";
  return "application/octet-stream";
}
