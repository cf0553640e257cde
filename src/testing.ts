/** Kit for the tests of people who write actions: a real PostgreSQL without an installed one. */
export { type EmbeddedOptions, type EmbeddedPostgres, startEmbeddedPostgres } from './embedded/postgres.ts';
