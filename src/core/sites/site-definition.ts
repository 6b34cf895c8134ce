/** Checks the definitions of sites, requests for grants, and the names in subscriptions. */
import { refuseInputs, type InputError } from '../errors.ts';
import { hasAtMost, id, isName, isWithin } from '../ids.ts';
import { SESSION_TTL_SECONDS, SITE_NAMES, TITLE_MAX_CHARS } from '../limits.ts';
import type { SiteDefinition, GrantRequest } from './site-requests.ts';
import type { NewSite } from './site-stores.ts';
import { COOPERATIVE } from './site.ts';

/** The event names that have a special meaning for an `EventSource`. */
export const RESERVED_EVENTS: ReadonlySet<string> = new Set(['error', 'open', 'message']);
export const RESERVED_PREFIX = 'callboard.';

/** Whether an event with this name can be published: the name is valid and not reserved by event streams. */
export function isEventName(text: unknown): text is string {
  return typeof text === 'string' && isName(text) && !RESERVED_EVENTS.has(text) && !text.startsWith(RESERVED_PREFIX);
}

/**
 * Checks the definition of a site. Throws one `invalid_argument` that names each wrong member of `title`, `event_names`
 * and `actions`. If these are valid, throws one for `site_id` or `client_id`.
 */
export function checkDefinition(userId: string, definition: SiteDefinition): NewSite {
  const faults: InputError[] = [];
  const { title, capabilityProfile: profile } = definition;
  if (title && !hasAtMost(title, TITLE_MAX_CHARS))
    faults.push({ parameter: 'title', detail: `expected at most ${TITLE_MAX_CHARS} characters` });
  const eventNames = namesOf('event_names', definition.eventNames, { faults, isGood: isEventName });
  const actions = namesOf('actions', definition.actions, { faults, isGood: isName });
  refuseInputs(faults);
  return {
    userId,
    siteId: id('site_id', definition.siteId),
    mode: COOPERATIVE,
    title: title ?? null,
    eventNames: eventNames ?? [],
    actions: actions ?? [],
    capabilityProfile: { actionInvocation: profile?.actionInvocation ?? false, sharing: profile?.sharing ?? false },
    clientId: id('client_id', definition.clientId),
  };
}

type CheckedGrant = {
  readonly events: readonly string[] | null;
  readonly actions: readonly string[] | null;
  readonly ttlMs: number | null;
};

/** Checks a request for a grant. Throws one `invalid_argument` that names each wrong member. */
export function checkGrant({ events, actions, ttlSeconds }: GrantRequest): CheckedGrant {
  const faults: InputError[] = [];
  const { min, max } = SESSION_TTL_SECONDS;
  const ttl = ttlSeconds ?? null;
  if (!isWithin(ttl, SESSION_TTL_SECONDS))
    faults.push({ parameter: 'ttl_seconds', detail: `expected ${min} to ${max}` });
  const checked = {
    events: namesOf('events', events, { faults, isGood: isEventName }),
    actions: namesOf('actions', actions, { faults, isGood: isName }),
    ttlMs: ttl === null ? null : ttl * 1000,
  };
  refuseInputs(faults);
  return checked;
}

/** Returns the names that a subscription requests, without duplicates. Throws `invalid_argument`. */
export function checkNames(names: readonly string[] | null): readonly string[] | null {
  const faults: InputError[] = [];
  const checked = namesOf('names', names, { faults, isGood: isEventName });
  if (checked?.length === 0) faults.push({ parameter: 'names', detail: 'expected at least one' });
  refuseInputs(faults);
  return checked;
}

/** Returns each name once, in the given order. Null if the parameter is absent. */
function namesOf(
  parameter: string,
  names: readonly string[] | null | undefined,
  { faults, isGood }: { readonly faults: InputError[]; readonly isGood: (name: string) => boolean },
): readonly string[] | null {
  if (names === null || names === undefined) return null;
  const wrong = names.findIndex((name) => !isGood(name));
  if (wrong >= 0) faults.push({ parameter: `${parameter}[${wrong}]`, detail: 'not an allowed name' });
  if (names.length > SITE_NAMES) faults.push({ parameter, detail: `expected at most ${SITE_NAMES}` });
  return [...new Set(names)];
}
