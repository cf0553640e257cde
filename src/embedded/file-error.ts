/** The system's code of a failed file operation, such as `ENOENT`. Empty when the error has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
