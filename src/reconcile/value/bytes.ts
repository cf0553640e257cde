export type BytesEncoding = 'hex' | 'base64' | 'escape';

/**
 * Lower-case hex of bytes. PostgreSQL's `\x00ff` is hex whatever was declared; else the text is read as declared:
 * `0x00FF` or plain hex, base64 (RFC 4648, padded; line ends are left out), or PostgreSQL's `escape` form.
 */
export function canonicalBytes(text: string, encoding: BytesEncoding = 'hex'): string | undefined {
  const plain = text.trim();
  if (encoding === 'base64' && !plain.startsWith('\\x')) return fromBase64(plain);
  if (encoding === 'escape' && !plain.startsWith('\\x')) return fromEscape(text);
  return /^(?:\\x|0x)?((?:[0-9a-f]{2})*)$/.exec(plain.toLowerCase())?.[1];
}

function fromBase64(text: string): string | undefined {
  const packed = text.replace(/\r?\n/g, '');
  const bytes = Buffer.from(packed, 'base64');
  // Decoding is lenient; only a text that would be written again is base64.
  return bytes.toString('base64') === packed ? bytes.toString('hex') : undefined;
}

/** Backslashes are doubled, bytes outside printable ASCII are `\ooo`. */
function fromEscape(text: string): string | undefined {
  if (!/^(?:[ -[\]-~]|\\\\|\\[0-3][0-7]{2})*$/.test(text)) return undefined;
  const hexOf = (byte: number) => byte.toString(16).padStart(2, '0');
  return [...text.matchAll(/\\\\|\\(\d{3})|[^\\]/g)]
    .map(([piece, octal]) => hexOf(octal === undefined ? piece.charCodeAt(0) : Number.parseInt(octal, 8)))
    .join('');
}

/** Without the zero bytes that fill up a column of fixed width. */
export function withoutZeros(hex: string): string {
  return hex.replace(/(?:00)+$/, '');
}
