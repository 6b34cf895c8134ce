/** Joins the lists of guard mutants: mistakes that each leave out one check of the relay. */
import { AUDIT_GUARDS } from './guards-audit.ts';
import { ADVERTISED_GUARDS } from './guards-advertised.ts';
import { HOMES_GUARDS } from './guards-homes.ts';
import { GRAPHQL_GUARDS } from './guards-graphql.ts';
import { HTTP_GUARDS } from './guards-http.ts';
import { JUDGES_GUARDS } from './guards-judges.ts';
import { INTERRUPTION_GUARDS } from './guards-interruptions.ts';
import { JSON_GUARDS } from './guards-json.ts';
import { LINKS_GUARDS } from './guards-links.ts';
import { MCP_GUARDS } from './guards-mcp.ts';
import { OWNED_GUARDS } from './guards-owned.ts';
import { PAUSES_GUARDS } from './guards-pauses.ts';
import { PLACES_GUARDS } from './guards-places.ts';
import { REDIS_GUARDS } from './guards-redis.ts';
import { REDIS_HISTORY_GUARDS } from './guards-redis-history.ts';
import { REVOCATION_GUARDS } from './guards-revocations.ts';
import { SHARES_GUARDS } from './guards-shares.ts';
import { DURABLE_GUARDS, STORED_GUARDS } from './guards-stored.ts';
import type { GuardMutant } from './mutant.ts';

/** All guard mutants, in the order in which `npm run mutants` plants them. */
export const GUARD_MUTANTS: readonly GuardMutant[] = [
  ...GRAPHQL_GUARDS,
  ...JSON_GUARDS,
  ...HTTP_GUARDS,
  ...LINKS_GUARDS,
  ...PLACES_GUARDS,
  ...PAUSES_GUARDS,
  ...SHARES_GUARDS,
  ...STORED_GUARDS,
  ...DURABLE_GUARDS,
  ...AUDIT_GUARDS,
  ...REVOCATION_GUARDS,
  ...REDIS_GUARDS,
  ...REDIS_HISTORY_GUARDS,
  ...ADVERTISED_GUARDS,
  ...JUDGES_GUARDS,
  ...INTERRUPTION_GUARDS,
  ...MCP_GUARDS,
  ...OWNED_GUARDS,
  ...HOMES_GUARDS,
];
