import type { z } from 'zod';
import { formatPath, type Path } from './path.ts';
import { childSchema, type Form, formsOf } from './schema-walk.ts';

/**
 * What YAML and the environment cannot say. A key with nothing after it (all its lines commented out) counts as left
 * out, unless null is allowed there. A text that came from `${...}` becomes a number or boolean where only that is
 * allowed (`port: ${env:PORT}`).
 */
export function fitToSchema(
  root: z.core.$ZodType,
  document: unknown,
  interpolated: readonly Path[],
): unknown {
  const fromOutside = new Set(interpolated.map(formatPath));

  const visit = (schemas: readonly z.core.$ZodType[], value: unknown, path: Path): unknown => {
    const forms = schemas.flatMap((schema) => formsOf(schema, value));
    if (typeof value === 'string') return fromOutside.has(formatPath(path)) ? fitScalar(forms, value) : value;
    if (Array.isArray(value))
      return value.map((item, at) => visit(childSchemas(forms, at), item, [...path, at]));
    if (value === null || typeof value !== 'object') return value;
    const entries = Object.entries(value).filter(([key, item]) => item !== null || !meansLeftOut(forms, key));
    return Object.fromEntries(
      entries.map(([key, item]) => [key, visit(childSchemas(forms, key), item, [...path, key])]),
    );
  };
  return visit([root], document, []);
}

function fitScalar(forms: readonly Form[], text: string): unknown {
  const types = new Set(forms.map((form) => form.schema._zod.def.type));
  if (types.has('string')) return text;
  if (types.has('number') && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (types.has('boolean') && /^(true|false)$/.test(text)) return text === 'true';
  return text;
}

/** Entries of a record are names that a person gave; an empty one is a mistake, not something left out. */
function meansLeftOut(forms: readonly Form[], key: string): boolean {
  return forms.some((form) => {
    if (form.schema._zod.def.type !== 'object') return false;
    const schema = childSchema(form, key);
    return (
      schema !== undefined && !formsOf(schema, null).some((inner) => inner.schema._zod.def.type === 'null')
    );
  });
}

function childSchemas(forms: readonly Form[], part: string | number): z.core.$ZodType[] {
  return forms.flatMap((form) => childSchema(form, part) ?? []);
}
