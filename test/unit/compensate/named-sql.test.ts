import { describe, expect, it } from 'vitest';
import { compileNamedSql } from '../../../src/compensate/named-sql.ts';
import { TrueupError } from '../../../src/error.ts';

describe('names become places', () => {
  it('numbers them from left to right', () => {
    expect(compileNamedSql('update orders set status = :status where order_no = :order_no')).toEqual({
      text: 'update orders set status = $1 where order_no = $2',
      names: ['status', 'order_no'],
    });
  });

  it('gives each use of a name its own place, because each place has one type', () => {
    expect(compileNamedSql('insert into t (a, b) values (:x, :x::text)')).toEqual({
      text: 'insert into t (a, b) values ($1, $2::text)',
      names: ['x', 'x'],
    });
  });

  it('takes a name that directly follows an operator or a parenthesis', () => {
    expect(compileNamedSql('select f(:a,:b)where c=:d').text).toBe('select f($1,$2)where c=$3');
  });

  it('keeps a statement without names as it is', () => {
    expect(compileNamedSql('delete from stale;')).toEqual({ text: 'delete from stale;', names: [] });
  });
});

describe('what only looks like a name is left alone', () => {
  it.each([
    ['a string', `update t set a = 'x :no ''y'' :no' where k = `],
    ['a string with escapes', `update t set a = E'it\\'s :no' where k = `],
    ['a string after a column that ends in e', `update t set name='C:\\' where k = `],
    ['an identifier', `update "t :no ""q""" set a = 1 where k = `],
    ['a line comment', `update t -- not :no; 'nor this\n set a = 1 where k = `],
    ['a nested comment', `update t /* :no /* deeper :no */ still :no */ set a = 1 where k = `],
    ['a dollar quote', `update t set a = $$ :no ' $$ where k = `],
    ['a tagged dollar quote', `update t set a = $tag$ :no $$ ; $tag$ where k = `],
    ['a dollar within an identifier', `update t set a$b$c = 1 where k = `],
    ['a cast', `update t set a = b::text::varchar where k = `],
    ['an array slice', `update t set a = b[1:n] where k = `],
    ['a named argument', `update t set a = f(b := 1) where k = `],
  ])('%s', (_what, start) => {
    expect(compileNamedSql(`${start}:key`)).toEqual({ text: `${start}$1`, names: ['key'] });
  });
});

describe('what cannot be one effect in one transaction is refused', () => {
  it.each([
    ['delete from a; delete from b', /more than one statement/],
    [`delete from a; 'text'`, /more than one statement/],
    ['delete from a; :name', /more than one statement/],
    ['commit', /starts with COMMIT/],
    ['/* sly */ Rollback', /starts with ROLLBACK/],
    ['set search_path = x', /starts with SET/],
    ['update t set a = $1', /numbered place/],
    [`update t set a = 'open`, /never closed/],
    ['update t set a = $x$ open', /\$x\$ that is never closed/],
    ['update t /* open', /comment that is never closed/],
    ['  -- nothing', /is empty/],
    [' ; ', /is empty/],
  ])('%s', (statement, reason) => {
    expect(() => compileNamedSql(statement)).toThrow(reason);
    expect(() => compileNamedSql(statement)).toThrow(TrueupError);
  });

  it('allows semicolons and comments at the end', () => {
    expect(compileNamedSql('delete from a where k = :k ; ; -- done').names).toEqual(['k']);
  });
});
