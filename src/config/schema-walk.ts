import { z } from 'zod';
import type { Path } from './path.ts';

type Schema = z.core.$ZodTypes;

/** One form that the schema allows at a place, with defaults, options and transforms peeled off. */
export interface Form {
  readonly schema: Schema;
  readonly description: string | undefined;
  readonly secret: boolean;
}

/** The forms that `schema` allows; of a union told apart by a key, only the one that `value` names. */
export function formsOf(schema: z.core.$ZodType, value: unknown): readonly Form[] {
  return peel(schema as Schema, value, undefined, false);
}

/** The forms allowed at a path of a document. Empty when the schema knows no such place. */
export function formsAt(root: z.core.$ZodType, document: unknown, path: Path): readonly Form[] {
  let forms = formsOf(root, document);
  let value = document;
  for (const part of path) {
    value = child(value, part);
    forms = forms.flatMap((form) => {
      const inner = childSchema(form, part);
      return inner === undefined ? [] : formsOf(inner, value);
    });
  }
  return forms;
}

/** The schema of one key or position inside a form. */
export function childSchema(form: Form, part: string | number): z.core.$ZodType | undefined {
  const { def } = form.schema._zod;
  if (def.type === 'object') return Object.hasOwn(def.shape, part) ? def.shape[part] : undefined;
  if (def.type === 'record') return def.valueType;
  if (def.type === 'array') return def.element;
  return undefined;
}

/** The keys that an object form knows, of all forms together. */
export function knownKeys(forms: readonly Form[]): string[] {
  return [
    ...new Set(
      forms.flatMap((form) => {
        const { def } = form.schema._zod;
        return def.type === 'object' ? Object.keys(def.shape) : [];
      }),
    ),
  ];
}

function peel(
  schema: Schema,
  value: unknown,
  outer: string | undefined,
  outerSecret: boolean,
): readonly Form[] {
  const { description: own, writeOnly } = z.globalRegistry.get(schema) ?? {};
  const description = outer ?? own;
  const secret = outerSecret || writeOnly === true;
  const { def } = schema._zod;
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return peel(def.innerType as Schema, value, description, secret);
    case 'pipe':
      return peel(def.in as Schema, value, description, secret);
    case 'lazy':
      return peel(def.getter() as Schema, value, description, secret);
    case 'union':
      return options(def, value).flatMap((option) => peel(option, value, description, secret));
    default:
      return [{ schema, description, secret }];
  }
}

function options(def: z.core.$ZodUnionDef, value: unknown): readonly Schema[] {
  const all = def.options as readonly Schema[];
  const key = (def as Partial<z.core.$ZodDiscriminatedUnionDef>).discriminator;
  if (key === undefined || value === undefined) return all;
  const named = child(value, key);
  return all.filter((option) => {
    const inner = option._zod.def;
    if (inner.type !== 'object') return false;
    const literal = inner.shape[key] as Schema | undefined;
    return literal?._zod.def.type === 'literal' && literal._zod.def.values.includes(named as string);
  });
}

function child(value: unknown, part: string | number): unknown {
  if (value === null || typeof value !== 'object' || !Object.hasOwn(value, part)) return undefined;
  return (value as Record<string | number, unknown>)[part];
}
