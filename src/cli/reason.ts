import { InvalidArgumentError } from 'commander';

/** For `--reason`: what stands in the audit must say something. */
export function reasonText(text: string): string {
  const trimmed = text.trim();
  if (trimmed !== '') return trimmed;
  throw new InvalidArgumentError('It says nothing: write why, for whoever reads the audit.');
}
