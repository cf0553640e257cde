/**
 * Control characters, line ends and changes of direction included: one sample stays one line, a key cannot start a
 * heading, and nothing behind it is shown backwards.
 */
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu;
/** Words that call everybody in some chat. A plain `@name` in a business key is left as it is. */
const CALLS_EVERYBODY = /@(?=all\b|everyone\b|channel\b|here\b|所有人)/giu;
const ELLIPSIS = '…';

/** Data as it may stand in a message: one line, and nobody is called by it. */
export function oneLine(text: string): string {
  return text.replace(CONTROL, ' ').replace(CALLS_EVERYBODY, '@\u200b').trim();
}

/**
 * `text`, each character through `encode`, in at most `bytes` bytes of UTF-8. Cut at a character boundary, never
 * within an escaped character, and marked with an ellipsis where there is room for it.
 */
export function cutText(
  text: string,
  bytes: number,
  encode: (text: string) => string = (same) => same,
): string {
  const whole = encode(text);
  if (Buffer.byteLength(whole) <= bytes) return whole;
  const mark = Buffer.byteLength(ELLIPSIS) <= bytes ? ELLIPSIS : '';
  let room = bytes - Buffer.byteLength(mark);
  let kept = '';
  for (const character of text) {
    const escaped = encode(character);
    room -= Buffer.byteLength(escaped);
    if (room < 0) break;
    kept += escaped;
  }
  return kept + mark;
}
