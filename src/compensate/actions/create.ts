import type { Action, Target } from '../../config/schema.ts';
import type { Sender } from '../action.ts';
import { createHttpSender } from './http.ts';
import { createModuleSender } from './module.ts';
import { createSqlSender } from './sql.ts';

/**
 * The sender of one repair: one per (target, action), because what an answer means belongs to the action.
 * `baseDirectory` is where the config file is. Throws `TrueupError` (`TRU_CONFIG_TARGET`) when the target's address does
 * not fit the action.
 */
export function createSender(
  action: Action,
  options: { readonly targetName: string; readonly target: Target; readonly baseDirectory: string },
): Sender {
  switch (action.type) {
    case 'http':
      return createHttpSender({ ...options, answers: action.answers });
    case 'sql':
      return createSqlSender(options);
    case 'module':
      return createModuleSender(options);
  }
}
