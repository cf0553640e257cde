// The text of docs/reference/config.md, from the schema that checks config files. Needs a build.
import { configJsonSchema } from '../dist/config/json-schema.js';
import { configSchema } from '../dist/config/schema.js';
import { INTRODUCTION, SECTIONS } from './reference-words.mjs';

const LINKS = { side: 'side', rule: 'rule', repair: 'repair', action: 'action', matcher: 'matcher' };
const DURATION = / ?\(a duration: [^)]*\)$/;

export function configReference() {
  const root = configJsonSchema();
  const parts = SECTIONS.map(([title, place, pick, words]) => {
    const schema = pick(root);
    const heading = [`## ${title}`, '', place === '' ? words : `\`${place}\`: ${words}`, ''];
    if (!schema.oneOf) return [...heading, ...table(rowsOf(title, schema, '', defaultsOf(title)))];
    const variants = schema.oneOf.flatMap((variant) => {
      const { const: type, description } = variant.properties.type;
      return [`### type: ${type}`, '', `${sentence(description)}`, '', ...table(rowsOf(title, variant, ''))];
    });
    return [...heading, ...variants];
  });
  return [...INTRODUCTION, ...parts.flat()].join('\n');
}

const sentence = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;

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

function rowsOf(section, schema, prefix, defaults, parent = '') {
  const object = objectForm(schema);
  const demand = parent === '' ? 'required' : `required with \`${parent}\``;
  return Object.entries(object.properties).flatMap(([key, inner]) => {
    // The heading of a form says its type.
    if (prefix === '' && key === 'type' && isConst(inner)) return [];
    const path = `${prefix}${key}`;
    const isRequired = object.required?.includes(key) ?? false;
    const nested = objectForm(inner);
    const members = nested?.properties
      ? rowsOf(section, nested, `${path}.`, defaults?.[key], isRequired ? parent : path)
      : membersOf(section, inner, path);
    const plain = inner.type === 'object' && inner.properties !== undefined;
    if (inner.description === undefined) throw new Error(`${section}: ${path} has no description`);
    const row = [
      `\`${path}\``,
      plain ? 'group' : typeOf(inner),
      isRequired ? demand : fallback(inner, defaults?.[key]),
      inner.description.replace(DURATION, ''),
    ];
    return [row, ...members];
  });
}

/** Rows of the values of a map, where these are objects of their own; other sections hold the rest. */
function membersOf(section, schema, path) {
  const value = schema.additionalProperties;
  if (section === 'Top level' && ['targets', 'reconciliations'].includes(path)) return [];
  if (!value?.properties) return [];
  return rowsOf(section, value, `${path}.<name>.`, undefined, path);
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
