import { describe, expect, it } from 'vitest';
import { stateTable } from '../../../src/compensate/state-table.ts';
import { RULE_OPTIONS } from '../../../src/config/rule-options.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { VALUE_TYPES } from '../../../src/reconcile/record.ts';
import { RULE_PARTS } from '../../../src/reconcile/value/rule-name.ts';
import { helpOf, registeredCommands } from './commands.ts';
import { exists, inlineCode, readPage, readText, sources, tableRows } from './markdown.ts';

const code = sources();

/** Every text between single quotes in src that looks like this, with the files that hold it. */
function quoted(pattern: RegExp): string[] {
  const found = [...code.values()].flatMap((text) =>
    [...text.matchAll(pattern)].map(([, word = '']) => word),
  );
  return [...new Set(found)].toSorted();
}

describe('docs/reference/errors.md', () => {
  const rows = tableRows(readPage('docs/reference/errors.md')).filter(([code]) => code !== 'code');
  const inCode = quoted(/'(TRU_[A-Z_]+)'/g);

  it('has each error code of the code, and no other', () => {
    expect(inCode.length).toBeGreaterThan(40);
    expect(rows.map(([code]) => code).toSorted()).toEqual(inCode);
  });

  it('gives each its exit code, meaning and remedy', () => {
    for (const [name, exit, meaning, remedy] of rows) {
      expect(exit, name).toMatch(/^\d+(, \d+)?( or \d+)?$/);
      expect(meaning?.length, name).toBeGreaterThan(10);
      expect(remedy?.length, name).toBeGreaterThan(5);
    }
  });

  it('gives the exit codes that the code gives where it names them', () => {
    const EXIT = Object.fromEntries(
      [...readText('src/error.ts').matchAll(/^ {2}(\w+): (\d+),$/gm)].map(([, name, exit]) => [name, exit]),
    );
    for (const [name = '', exits] of rows) {
      const named = [...code.values()].flatMap((text) =>
        [...text.matchAll(new RegExp(`TrueupError\\(\\s*'${name}'([\\s\\S]*?)\\);`, 'g'))].map(
          ([, rest = '']) => EXIT[/exit: EXIT\.(\w+)/.exec(rest)?.[1] ?? 'unexpected'],
        ),
      );
      // Where another variable gives the exit, nothing can be read here.
      if (name !== 'TRU_CONFIG_TARGET')
        for (const exit of named) expect(exits?.match(/\d+/g), name).toContain(exit);
    }
  });
});

describe('docs/reference/metrics.md', () => {
  it('has each metric with its type, and no other', async () => {
    const text = await createMetrics({ version: '0' }).text();
    const registered = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    const rows = tableRows(readPage('docs/reference/metrics.md')).filter(([name]) => name !== 'name');
    expect(registered.length).toBeGreaterThan(10);
    expect(rows.map(([name, type]) => `${name} ${type}`).toSorted()).toEqual(registered.toSorted());
  });
});

describe('docs/reference/rules.md', () => {
  const sections = readPage('docs/reference/rules.md').prose.split(/^## /m);
  const firstCells = (title: string) => {
    const prose = sections.find((section) => section.startsWith(title)) ?? '';
    return tableRows({ ...readPage('docs/reference/rules.md'), prose }).map(([cell]) => cell);
  };

  it('has each part that names of rules are made of, and no other', () => {
    expect(firstCells('Names of rules').slice(1)).toEqual([...RULE_PARTS]);
  });

  it('has each type, and no other', () => {
    expect(firstCells('Types').slice(1)).toEqual([...VALUE_TYPES]);
  });

  it('speaks of options that exist', () => {
    const options = sections.find((section) => section.startsWith('Options')) ?? '';
    const named = [...options.matchAll(/\*\*`(\w+)`\*\*/g)].map(([, name = '']) => name);
    expect(named.length).toBeGreaterThan(8);
    expect([...RULE_OPTIONS, 'map']).toEqual(expect.arrayContaining(named));
  });
});

describe('docs/reference/cli.md', () => {
  it('holds the help of each command as it is', async () => {
    const bodies = readPage('docs/reference/cli.md').blocks.map(({ body }) => body.trim());
    const helps = (await registeredCommands()).map((command) => helpOf(command).trim());
    expect(bodies.slice(1).toSorted()).toEqual(helps.toSorted());
  });
});

describe('docs/architecture.md', () => {
  const page = readPage('docs/architecture.md');

  it('holds the state table as the code makes it', () => {
    const [, , ...tables] = stateTable().split('\n');
    expect(page.text).toContain(tables.join('\n').trim());
  });

  it('has each crash point of the code, and no other', () => {
    const points = quoted(/checkpoint\??\.?\('([a-z-]+)'\)/g);
    const section = page.prose.split('## Crash points')[1]?.split('\n## ')[0] ?? '';
    const rows = [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name);
    expect(points.length).toBeGreaterThan(8);
    expect(rows.toSorted()).toEqual(points);
  });
});

describe('docs/guarantees.md', () => {
  const page = readPage('docs/guarantees.md');

  it('has ten guarantees', () => {
    const titles = [...page.text.matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number));
    expect(titles).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('names tests that exist for each, or says that there is none yet', () => {
    for (const section of page.text.split(/^## \d+\. /m).slice(1)) {
      const tests = inlineCode({ ...page, prose: section }).filter((name) => name.endsWith('.test.ts'));
      expect(tests.length > 0 || /No test yet/.test(section), section.slice(0, 60)).toBe(true);
      for (const name of tests) expect(exists(name), name).toBe(true);
    }
  });
});
