/** Checks the options of a runtime, and writes its hello frame. */
import { ID } from '../../protocol/fields.ts';
import { upFrame } from '../link/frame.ts';
import { toJson } from './ends.ts';
import { fits, MAX_METADATA_BYTES } from './limits.ts';
import type { RuntimeOptions, SiteDefinition } from './types.ts';

/** Returns a valid id. Throws TypeError, naming the option, for an invalid one. */
export function checkId(option: string, id: string): string {
  if (!ID.test(id)) throw new TypeError(`${option}: 1 to 128 of A-Z a-z 0-9 . _ : @ ~ - expected`);
  return id;
}

/** Returns the metadata as JSON text. Throws TypeError when it is not JSON or too large. */
export function metadataJson({ metadata }: RuntimeOptions): string {
  const json = toJson(metadata ?? null);
  if (typeof json !== 'string' || !fits(json, MAX_METADATA_BYTES)) {
    throw new TypeError(`metadata: JSON of at most ${MAX_METADATA_BYTES} bytes expected`);
  }
  return json;
}

export type Hello = {
  readonly token: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly clientType: RuntimeOptions['clientType'];
  readonly metadata: string;
  readonly actions: string;
};

/** Returns the first frame of a client's link. `metadata` and `actions` are JSON text. */
export function helloFrame({ token, clientId, instanceId, clientType, metadata, actions }: Hello): string {
  const ids = { client_id: clientId, instance_id: instanceId, client_type: clientType };
  return upFrame({ type: 'hello', token, ...ids }, `{"metadata":${metadata},"actions":${actions}}`);
}

/** Returns the payload of the `site` frame that registers a site. */
export function siteJson({ title, eventNames, actions, capabilityProfile: profile }: SiteDefinition): string {
  return JSON.stringify({
    title: title ?? null,
    event_names: eventNames ?? [],
    actions: actions ?? [],
    capability_profile: { action_invocation: profile?.actionInvocation ?? false, sharing: profile?.sharing ?? false },
  });
}
