// Words of docs/reference/config.md that belong to no key: those of keys are in src/config/schema.

export const INTRODUCTION = [
  '# Configuration',
  '',
  '<!-- Written by scripts/write-reference.mjs from src/config/schema. Do not edit. -->',
  '',
  'One YAML file. Unknown keys are refused, and all problems of a file are told at once, each with its place and what',
  'to write instead. `trueup check` checks a file and connects to its sides; `config/trueup.schema.json` is the same',
  'schema for editors.',
  '',
  '- A **duration** is written `250ms`, `30s`, `15m`, `1h30m`, `7d`, or in ISO 8601 (`PT15M`). Months and years are',
  '  refused.',
  '- A **secret** is never printed. It should come from outside the file.',
  `- \`\${env:NAME}\`, \`\${env:NAME:-default}\` and \`\${file:/path}\` may stand in every value; \`$\${\` is a literal \`\${\`.`,
  '- In the tables a dot stands for nesting, `<name>` for a name that you choose, `[]` for each item of a list.',
  '',
];

/** Title, place, where in the JSON Schema, and what the section is about. */
export const SECTIONS = [
  ['Top level', '', (root) => root, 'Keys of the file itself.'],
  [
    'A target',
    'targets.<name>',
    (root) => root.properties.targets.additionalProperties,
    'What compensations and HTTP sides call. Names: lower-case letters, digits, `-` and `_`, starting with a letter.',
  ],
  [
    'A reconciliation',
    'reconciliations.<name>',
    (root) => root.properties.reconciliations.additionalProperties,
    'A pair of sides, the key that identifies a record on both, the compared fields, and what to do about diffs. [Plans](plans.md) are how a window is read.',
  ],
  ['Side', 'source, downstream', (root) => root.$defs.side, 'How one side is read. `type` chooses the form.'],
  [
    'Rule',
    'compare.<field>',
    (root) => root.$defs.rule,
    'How one field is compared. The short form is the type alone, or `ignore`. [Rules](rules.md) says what each does and what it is called in reports.',
  ],
  [
    'Repair',
    'repair.<kind>',
    (root) => root.$defs.repair,
    'What to do about diffs of one kind. The first repair of a list whose `when` holds is taken.',
  ],
  ['Action', 'repair.<kind>.action', (root) => root.$defs.action, 'How the target is called.'],
  [
    'Matcher',
    'action.answers.<class>[]',
    (root) => root.$defs.matcher,
    'Recognises an answer. All that is given must hold.',
  ],
  [
    'Channel',
    'alerts.channels.<name>',
    (root) => root.properties.alerts.properties.channels.additionalProperties,
    'Where alerts go.',
  ],
];
