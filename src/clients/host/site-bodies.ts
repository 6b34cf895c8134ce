/** Checks the JSON bodies of requests to the control server, member by member. */
import type { Check } from '../../protocol/fields.ts';
import { isRecord } from '../../protocol/json.ts';
import type { SiteDefinition } from '../runtime/types.ts';
import { ProblemError, type Fault } from './problems.ts';
import type { NewSiteEvent } from './publisher.ts';

type Members = Readonly<Record<string, unknown>>;

const TEXT: Check = { expected: 'a string', test: (value) => typeof value === 'string' };
const NAMES: Check = { expected: 'an array of strings', test: isTexts };
const FLAG: Check = { expected: 'true or false', test: (value) => typeof value === 'boolean' };
const OBJECT: Check = { expected: 'an object', test: isRecord };
const ANY: Check = { expected: 'JSON', test: () => true };

const DEFINITION = { title: TEXT, event_names: NAMES, actions: NAMES, capability_profile: OBJECT };
const PROFILE = { action_invocation: FLAG, sharing: FLAG };
const EVENT = { name: TEXT, data: ANY, message_id: TEXT };

/**
 * Reads the definition of a site. Throws ProblemError `invalid_argument` that names every wrong member. The syntax of
 * names is left to the relay.
 */
export function readDefinition(siteId: string, body: Members): SiteDefinition {
  const wrong = faultsOf(DEFINITION, body);
  const profile = isRecord(body['capability_profile']) ? body['capability_profile'] : {};
  refuse([...wrong, ...faultsOf(PROFILE, profile, 'capability_profile.')]);
  const { title, event_names: eventNames, actions } = body;
  const { action_invocation: actionInvocation, sharing } = profile;
  return {
    siteId,
    title: typeof title === 'string' ? title : null,
    eventNames: isTexts(eventNames) ? eventNames : [],
    actions: isTexts(actions) ? actions : [],
    capabilityProfile: { actionInvocation: actionInvocation === true, sharing: sharing === true },
  };
}

/** Reads an event. Throws ProblemError `invalid_argument` that names every wrong member. */
export function readEvent(body: Members): NewSiteEvent {
  const { name, data, message_id: messageId } = body;
  const missing = name === undefined || name === null ? [{ parameter: 'name', detail: 'required' }] : [];
  refuse([...missing, ...faultsOf(EVENT, body)]);
  return { name: String(name), data: data ?? null, ...(typeof messageId === 'string' && { messageId }) };
}

/** Returns the faults of the given members. A null member counts as absent. */
function faultsOf(checks: Readonly<Record<string, Check>>, members: Members, prefix = ''): readonly Fault[] {
  return Object.entries(members).flatMap(([name, value]) => {
    const parameter = prefix + name;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check) return [{ parameter, detail: 'unknown member' }];
    return value === null || check.test(value) ? [] : [{ parameter, detail: `expected ${check.expected}` }];
  });
}

function refuse(errors: readonly Fault[]): void {
  if (errors.length === 0) return;
  const detail = errors.map((fault) => `${fault.parameter}: ${fault.detail}`).join('; ');
  throw new ProblemError('invalid_argument', detail, { errors });
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
