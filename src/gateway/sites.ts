/** Handles `site` frames: a client registers or removes a cooperative site. */
import { fail, invalid, notFound } from '../core/errors.ts';
import { requireUser, type Principal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import type { LinkSession } from '../core/delivery/link.ts';
import { trustJson, type JsonText, type Members } from '../core/json.ts';
import { ENVELOPE_PARTS } from '../core/limits.ts';
import type { SiteDefinition } from '../core/sites/api.ts';
import type { UpFrame } from '../protocol/frames.ts';
import { arrayOf, flagIn, memberIn, objectOf, payloadOf, textIn } from './payload.ts';

export type SiteFrame = Extract<UpFrame, { type: 'site' }>;

export type Hosting = {
  readonly core: Pick<Core, 'sites'>;
  readonly session: LinkSession;
  readonly principal: Principal;
};

/** Registers or removes a site that the link's client hosts. Rejects with a CallboardError or BadPayload. */
export async function takeSite(frame: SiteFrame, { core, session, principal }: Hosting): Promise<void> {
  const { host, clientId } = session;
  requireUser(principal, 'host');
  if (!host) fail('forbidden', 'The token in the hello of this link lacks the scope "host".');
  if (frame.op === 'remove') {
    if (!(await core.sites.remove(principal, frame.site_id))) notFound();
    return;
  }
  const definition = readDefinition(payloadOf(frame));
  await core.sites.register(principal, { ...definition, siteId: frame.site_id, clientId });
}

/** Reads a site definition. Unknown members are ignored. */
function readDefinition(payload: JsonText | null): Omit<SiteDefinition, 'siteId' | 'clientId'> {
  const given = payload === null || payload.trim() === 'null' ? trustJson('{}') : payload;
  const members = objectOf('payload', given);
  const profile = memberIn(members, 'capability_profile');
  return {
    title: textIn('title', memberIn(members, 'title')),
    eventNames: readNames('event_names', memberIn(members, 'event_names')),
    actions: readNames('actions', memberIn(members, 'actions')),
    capabilityProfile: profile === null ? null : readProfile(objectOf('capability_profile', profile)),
  };
}

function readProfile(members: Members): NonNullable<SiteDefinition['capabilityProfile']> {
  const flag = (member: string): boolean => flagIn(`capability_profile.${member}`, memberIn(members, member)) ?? false;
  return { actionInvocation: flag('action_invocation'), sharing: flag('sharing') };
}

function readNames(where: string, json: JsonText | null): readonly string[] | null {
  if (json === null) return null;
  return arrayOf(where, json, ENVELOPE_PARTS).map(
    (item, i) => textIn(`${where}[${i}]`, item) ?? invalid(`${where}[${i}]`, 'a string was expected'),
  );
}
