import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Names of the files in a directory, from the root, sorted. */
export function filesIn(directory: string, recursive = true): string[] {
  return readdirSync(`${ROOT}${directory}`, { recursive, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(relative(ROOT, entry.parentPath), entry.name))
    .sort();
}

export interface Page {
  /** Path from the root, such as `docs/architecture.md`. */
  readonly name: string;
  readonly text: string;
  /** The text without fenced blocks. */
  readonly prose: string;
  /** The bodies of fenced blocks, with their language. */
  readonly blocks: readonly { readonly language: string; readonly body: string }[];
}

export function readText(name: string): string {
  return readFileSync(`${ROOT}${name}`, 'utf8');
}

export function exists(name: string): boolean {
  return existsSync(`${ROOT}${name}`);
}

export function readPage(name: string): Page {
  const text = readText(name);
  const fence = /^```(\w*)\n([\s\S]*?)^```$/gm;
  return {
    name,
    text,
    prose: text.replace(fence, ''),
    blocks: [...text.matchAll(fence)].map(([, language = '', body = '']) => ({ language, body })),
  };
}

/** Every page of the repository, at the root and under docs/. */
export function allPages(): Page[] {
  const names = [...filesIn('.', false), ...filesIn('docs')];
  return names.filter((name) => name.endsWith('.md')).map(readPage);
}

/** What stands between single backticks. */
export function inlineCode({ prose }: Page): string[] {
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
}

/** First cells of the rows of all tables, without their backticks; further cells follow. */
export function tableRows({ prose }: Page): string[][] {
  return prose
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) => line.slice(2, -2).split(' | '))
    .map(([first = '', ...rest]) => [first.replaceAll('`', ''), ...rest]);
}

/** Texts of all source files, by name. */
export function sources(): Map<string, string> {
  const names = filesIn('src').filter((name) => name.endsWith('.ts'));
  return new Map(names.map((name) => [name, readText(name)]));
}
