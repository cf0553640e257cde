import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cutText } from '../../src/alert/cut-text.ts';
import { renderText } from '../../src/alert/message.ts';
import { alertMessage } from '../support/alert-message.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 400 });
const escapeHtml = (plain: string) =>
  plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

test('a message never exceeds its budget, is well formed, and keeps counts and link', () => {
  fc.assert(
    fc.property(text, text, text, fc.integer({ min: 120, max: 4000 }), (title, key, error, bytes) => {
      const samples = [{ key, text: error, id: null }];
      const shown = renderText(alertMessage({ title, samples, detail: error }), {
        bytes,
        encode: escapeHtml,
      });
      expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(bytes);
      expect(Buffer.from(shown).toString()).toBe(shown);
      expect(shown).toContain('count 12');
      expect(shown.endsWith('https://trueup.example/')).toBe(true);
    }),
  );
});

test('a cut never splits an escaped character', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('&', '<', '>', 'a', '数', '😀') }),
      fc.nat(60),
      (plain, bytes) => {
        const cut = cutText(plain, bytes, escapeHtml);
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(bytes);
        expect(cut.replace(/&(amp|lt|gt);/g, '')).not.toMatch(/[&<>;]/);
      },
    ),
  );
});
