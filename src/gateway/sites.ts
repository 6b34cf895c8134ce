import { fail, invalid, notFound } from '../core/errors.ts';
import { requireUser, type Principal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import type { LinkSession } from '../core/delivery/link.ts';
import { fromJson, type JsonValue } from '../core/json.ts';
import type { SiteDefinition } from '../core/sites/room.ts';
import type { UpFrame } from '../protocol/frames.ts';
import { payloadOf } from './payload.ts';

export type SiteFrame = Extract<UpFrame, { type: 'site' }>;

export type Hosting = {
  readonly core: Pick<Core, 'sites'>;
  readonly session: LinkSession;
  readonly principal: Principal;
};

/** Registers or removes a site that the link's client hosts. Rejects with a CallboardError, or BadPayload. */
export async function takeSite(frame: SiteFrame, { core, session, principal }: Hosting): Promise<void> {
  const { host, clientId } = session.result.connection;
  requireUser(principal, 'host');
  if (!host) fail('forbidden', 'The token that this link began with lacked the scope "host".');
  if (frame.op === 'remove') {
    if (!(await core.sites.remove(principal, frame.site_id))) notFound();
    return;
  }
  const definition = readDefinition(fromJson(payloadOf(frame)));
  await core.sites.register(principal, { ...definition, siteId: frame.site_id, clientId });
}

type Members = { readonly [key: string]: JsonValue };

/** Members that it does not know are ignored. */
function readDefinition(value: JsonValue): Omit<SiteDefinition, 'siteId' | 'clientId'> {
  const members = value === null ? {} : objectOf('payload', value);
  const profile = members['capability_profile'] ?? null;
  return {
    title: readText('title', members['title']),
    eventNames: readNames('event_names', members['event_names']),
    actions: readNames('actions', members['actions']),
    capabilityProfile: profile === null ? null : readProfile(objectOf('capability_profile', profile)),
  };
}

function readProfile(members: Members): NonNullable<SiteDefinition['capabilityProfile']> {
  const flag = (member: string): boolean => readFlag(`capability_profile.${member}`, members[member]);
  return { actionInvocation: flag('action_invocation'), sharing: flag('sharing') };
}

function objectOf(where: string, value: JsonValue): Members {
  return isObject(value) ? value : invalid(where, 'an object was expected');
}

function isObject(value: JsonValue): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readText(where: string, value: JsonValue = null): string | null {
  return value === null || typeof value === 'string' ? value : invalid(where, 'a string was expected');
}

function readFlag(where: string, value: JsonValue = null): boolean {
  return value === null || typeof value === 'boolean' ? (value ?? false) : invalid(where, 'true or false was expected');
}

function readNames(where: string, value: JsonValue = null): readonly string[] | null {
  if (value === null) return null;
  if (!Array.isArray(value)) return invalid(where, 'an array was expected');
  return value.map(
    (item: JsonValue, i) => readText(`${where}[${i}]`, item) ?? invalid(`${where}[${i}]`, 'a string was expected'),
  );
}
