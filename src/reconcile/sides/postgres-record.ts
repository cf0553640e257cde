import { canonicalise } from '../value/canonicalise.ts';
import { type Column, OID } from './postgres-columns.ts';
import type { Dialect } from './record-reader.ts';

export const POSTGRES_CELLS: Dialect<Column, string> = {
  /** A time without zone is taken for UTC unless its rule names a zone; `trueup check` says so. */
  zoneOf: (column) => (column.oid === OID.timestamp || column.oid === OID.date ? 'UTC' : undefined),
  valueOf(raw, { column, type, zone }) {
    // The blanks that fill up a char(n) are not part of the value.
    const text = raw !== null && column.oid === OID.bpchar ? raw.replace(/ +$/, '') : raw;
    return canonicalise(text, type, { zone });
  },
};
