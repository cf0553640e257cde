import type { SideConfig, Target } from '../../config/schema.ts';
import { type ReadGate, type Side, SideError } from '../side.ts';
import { createHttpSide } from './http.ts';
import type { SideContext } from './mapping.ts';
import { createMysqlSide } from './mysql.ts';
import { createPostgresSide } from './postgres.ts';

export interface CreateSideContext extends SideContext {
  readonly targets: Readonly<Record<string, Target>>;
  readonly readGate: ReadGate;
}

/** Opens a side by its type. Throws `SideError` when the configuration cannot work. */
export function createSide(config: SideConfig, context: CreateSideContext): Side {
  if (config.type === 'postgres') return createPostgresSide(config, context);
  if (config.type === 'mysql') return createMysqlSide(config, context);
  const target = context.targets[config.target];
  if (target?.url === undefined) {
    const message = `the target ${config.target} is not configured or has no url`;
    throw new SideError('TRU_SIDE_MISCONFIGURED', `${context.name} http ${config.target}`, message, {
      transient: false,
    });
  }
  return createHttpSide(config, { ...target, url: target.url }, context);
}
