import { describe, expect, it } from 'vitest';
import { helpOf, registeredCommands } from './commands.ts';
import { readText } from './markdown.ts';

const commands = await registeredCommands();

it('there are commands to look at, and main.ts registers each file of them', () => {
  expect(commands.length).toBeGreaterThan(15);
  const main = readText('src/cli/main.ts');
  const registers = [...main.matchAll(/import \{ (register\w+) \}/g)].map(([, name]) => name);
  const listed = /for \(const register of \[([\s\S]*?)\]/.exec(main)?.[1]?.match(/register\w+/g);
  expect(listed?.toSorted()).toEqual(registers.toSorted());
});

describe.each(commands.map((command) => [command.name(), command] as const))('trueup %s', (name, command) => {
  it('says what it does', () => {
    expect(command.description().length).toBeGreaterThan(10);
  });

  it('has an example that calls it with options that it has', () => {
    const [, example] = helpOf(command).split('\nExample:\n');
    const words = example?.trim().split(/\s+/) ?? [];
    expect(words, 'an example in the help').toContain('trueup');
    expect(words[words.indexOf('trueup') + 1]).toBe(name);
    const known = ['--config', '--format', ...command.options.map((option) => option.long)];
    // What stands between quotes is a value; the demo hands its options on to a script of its own.
    const used = example?.replace(/"[^"]*"/g, '').match(/--[a-z-]+/g) ?? [];
    if (name !== 'demo') expect(known).toEqual(expect.arrayContaining([...used]));
  });
});
