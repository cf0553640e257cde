const UUID = /^\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$/;

/** Lower case with hyphens, whatever the case, hyphens or braces it came with. */
export function canonicalUuid(text: string): string | undefined {
  return UUID.exec(text.trim().toLowerCase())?.slice(1).join('-');
}
