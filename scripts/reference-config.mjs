// The text of docs/reference/config.md, from the schema that checks config files. Needs a build.
import { configJsonSchema } from '../dist/config/json-schema.js';
import { configSchema } from '../dist/config/schema.js';
import { CAVEATS, MEANINGS } from './reference-words.mjs';

const SECTIONS = [
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
    'A pair of sides, the key that identifies a record on both, the compared fields, and what to do about diffs.',
  ],
  ['Side', 'source, downstream', (root) => root.$defs.side, 'How one side is read. `type` chooses the form.'],
  [
    'Rule',
    'compare.<field>',
    (root) => root.$defs.rule,
    'How one field is compared. The short form is the type alone, or `ignore`.',
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
const LINKS = { side: 'side', rule: 'rule', repair: 'repair', action: 'action', matcher: 'matcher' };
const DURATION = / ?\(a duration: [^)]*\)$/;

/** Throws when a key has no meaning, or when a meaning or caveat names a key that is not there. */
export function configReference() {
  const root = configJsonSchema();
  const used = new Set();
  const parts = SECTIONS.map(([title, place, pick, words]) => {
    const schema = pick(root);
    const heading = [`## ${title}`, '', place === '' ? words : `\`${place}\`: ${words}`, ''];
    if (!schema.oneOf)
      return [
        ...heading,
        ...table(rowsOf(title, schema, '', defaultsOf(title), used)),
        ...caveats(title, used),
      ];
    const variants = schema.oneOf.flatMap((variant) => {
      const type = variant.properties.type.const;
      const name = `${title} ${type}`;
      return [
        `### type: ${type}`,
        '',
        ...table(rowsOf(name, variant, '', undefined, used)),
        ...caveats(name, used),
      ];
    });
    return [...heading, ...variants];
  });
  const unused = [...Object.keys(MEANINGS), ...Object.keys(CAVEATS)].filter((key) => !used.has(key));
  if (unused.length > 0)
    throw new Error(`reference-words.mjs names keys that are not there: ${unused.join(', ')}`);
  return [...INTRODUCTION, ...parts.flat()].join('\n');
}

const INTRODUCTION = [
  '# Configuration',
  '',
  '<!-- Written by scripts/write-reference.mjs from src/config/schema.ts. Do not edit. -->',
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

/** What the schema itself fills in, where the JSON schema does not say it. */
function defaultsOf(title) {
  const postgres = { type: 'postgres', url: 'postgres://host/db', table: 't' };
  const config = configSchema.parse({
    version: 1,
    targets: { t: {} },
    reconciliations: { r: { source: postgres, downstream: postgres, key: ['id'], compare: {} } },
  });
  return { 'Top level': config, 'A target': config.targets.t, 'A reconciliation': config.reconciliations.r }[
    title
  ];
}

function rowsOf(section, schema, prefix, defaults, used, parent = '') {
  const object = objectForm(schema);
  const demand = parent === '' ? 'required' : `required with \`${parent}\``;
  return Object.entries(object.properties).flatMap(([key, inner]) => {
    // The heading of a form says its type.
    if (prefix === '' && key === 'type' && isConst(inner)) return [];
    const path = `${prefix}${key}`;
    const isRequired = object.required?.includes(key) ?? false;
    const nested = objectForm(inner);
    const members = nested?.properties
      ? rowsOf(section, nested, `${path}.`, defaults?.[key], used, isRequired ? parent : path)
      : membersOf(section, inner, path, used);
    const plain = inner.type === 'object' && inner.properties !== undefined;
    if (plain && inner.description === undefined && members.length > 0) return members;
    const { text, type } = describe(section, path, inner, used, members.length > 0 || isMap(inner));
    return [[`\`${path}\``, type, isRequired ? demand : fallback(inner, defaults?.[key]), text], ...members];
  });
}

/** Rows of the values of a map, where these are objects of their own; other sections hold the rest. */
function membersOf(section, schema, path, used) {
  const value = schema.additionalProperties;
  if (section === 'Top level' && ['targets', 'reconciliations'].includes(path)) return [];
  if (!value?.properties) return [];
  return rowsOf(section, value, `${path}.<name>.`, undefined, used, path);
}

function describe(section, path, schema, used, mayBeSilent) {
  const name = `${section}: ${path}`;
  const written = schema.description ?? schema.additionalProperties?.description ?? schema.items?.description;
  if (MEANINGS[name] !== undefined) used.add(name);
  if (written !== undefined && MEANINGS[name] !== undefined)
    throw new Error(`${name} has a meaning in the schema; take it out of reference-words.mjs`);
  const meaning = written ?? MEANINGS[name];
  if (meaning === undefined && !mayBeSilent && !isConst(schema)) throw new Error(`${name} has no meaning`);
  const text = (meaning ?? '').replace(DURATION, '');
  return { text, type: typeOf(schema) };
}

function caveats(section, used) {
  const found = Object.entries(CAVEATS).filter(([name]) => name.startsWith(`${section}: `));
  for (const [name] of found) used.add(name);
  if (found.length === 0) return [];
  return [...found.map(([name, text]) => `- \`${name.slice(section.length + 2)}\`: ${text}`), ''];
}

function objectForm(schema) {
  if (schema.properties) return schema;
  return schema.anyOf?.find((form) => form.properties);
}

const isConst = (schema) => schema.const !== undefined;
const isMap = (schema) => schema.type === 'object' && schema.additionalProperties !== false;

function typeOf(schema) {
  if (schema.$ref) {
    const name = schema.$ref.split('/').at(-1);
    return LINKS[name] ? `[${name}](#${LINKS[name]})` : 'any JSON';
  }
  if (schema.oneOf) return '[channel](#channel)';
  if (isConst(schema)) return `\`${schema.const}\``;
  if (schema.enum) return schema.enum.map((word) => `\`${word}\``).join(', ');
  if (schema.anyOf) {
    const forms = schema.anyOf.filter((form) => form.$ref !== '#/$defs/fromOutside').map(typeOf);
    return [...new Set(forms)].join(' or ');
  }
  if (schema.type === 'array') return `list of ${typeOf(schema.items)}`;
  if (schema.type === 'object')
    return isMap(schema) ? `name: ${typeOf(schema.additionalProperties)}` : 'object';
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  if (schema.writeOnly) return 'secret';
  if (DURATION.test(schema.description ?? '')) return 'duration';
  if (schema.type === 'integer') return `whole number${range(schema)}`;
  if (schema.type === 'number') return `number${range(schema)}`;
  if (schema.type === undefined) return 'any JSON';
  return schema.type === 'string' ? 'text' : schema.type;
}

function range({ minimum, exclusiveMinimum, maximum }) {
  const highest = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const lowest = minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const from =
    lowest !== undefined
      ? ` from ${lowest}`
      : exclusiveMinimum !== undefined
        ? ` above ${exclusiveMinimum}`
        : '';
  return highest === undefined ? from : `${from} to ${highest}`;
}

function fallback(schema, parsed) {
  const value = schema.default ?? parsed;
  if (value === '') return '`""`';
  return ['string', 'number', 'boolean'].includes(typeof value) ? `\`${value}\`` : '';
}

function table(rows) {
  return [
    '| key | type | default | meaning |',
    '| --- | --- | --- | --- |',
    ...rows.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`),
    '',
  ];
}
