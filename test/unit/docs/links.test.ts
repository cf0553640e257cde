import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { registeredCommands } from './commands.ts';
import { allPages, exists, inlineCode, type Page, readPage, readText } from './markdown.ts';

const pages = allPages();
const scripts: Record<string, string> = JSON.parse(readText('package.json')).scripts;
const commands = new Set((await registeredCommands()).map((command) => command.name()));

/** Directories whose files pages name. A pattern or a placeholder in the name is no file. */
const NAMED = /^(?:src|test|docs|config|scripts|migrations|demo|\.ci)\/[\w./-]+$/;

/** The anchor that a heading gets: lower case, without marks, spaces as dashes. */
function anchorsOf({ prose }: Page): string[] {
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it('there are pages to look at', () => {
  expect(pages.map(({ name }) => name)).toEqual(expect.arrayContaining(['README.md', 'docs/guarantees.md']));
});

describe.each(pages.map((page) => [page.name, page] as const))('%s', (name, page) => {
  it('links to files and headings that exist', () => {
    for (const [, target = ''] of page.prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? name : normalize(join(dirname(name), path));
      expect(exists(file), `${target} in ${name}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(readPage(file)), target).toContain(anchor);
    }
  });

  it('names files that exist', () => {
    const missing = inlineCode(page).filter((code) => NAMED.test(code) && !exists(code));
    expect(missing).toEqual([]);
  });

  it('calls npm scripts and commands that exist', () => {
    const lines = [page.text.matchAll(/npm run ([a-z0-9:]+)/g), page.text.matchAll(/npm (test|start)\b/g)];
    for (const [whole, script = ''] of lines.flatMap((found) => [...found])) {
      expect(Object.keys(scripts), whole).toContain(script);
    }
    const shell = page.blocks
      .filter(({ language }) => language === 'sh')
      .flatMap(({ body }) => body.split('\n'));
    const called = [
      ...inlineCode(page).map((code) => /^trueup ([a-z]+)\b/.exec(code)),
      ...shell.map((line) => /(?:^|[* ] )trueup ([a-z]+)\b/.exec(line)),
    ];
    for (const [, command = ''] of called.flatMap((found) => (found ? [found] : []))) {
      expect([...commands], `trueup ${command}`).toContain(command);
    }
  });
});

describe('README.md', () => {
  const page = readPage('README.md');

  it('tells a newcomer the two commands', () => {
    const lines = page.text.split('\n').map((line) => line.trim());
    expect(lines).toEqual(
      expect.arrayContaining(['npm ci && npm run demo', 'npm ci && npm test', 'npm start']),
    );
  });

  it('shows a configuration that is valid', async () => {
    const yaml = page.blocks.find(({ language }) => language === 'yaml')?.body ?? '';
    const directory = mkdtempSync(join(tmpdir(), 'trueup-readme-'));
    try {
      const file = join(directory, 'readme.yaml');
      writeFileSync(file, yaml);
      const env = {
        GATEWAY_URL: 'https://gateway.example',
        GATEWAY_TOKEN: 'token',
        SHOP_READER_URL: 'postgres://reader@shop.example/shop',
        SLACK_WEBHOOK_URL: 'https://hooks.example/chat',
      };
      const { config } = await loadConfig(file, env);
      expect(Object.keys(config.reconciliations)).toEqual(['payments']);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
