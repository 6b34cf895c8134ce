import { notFound } from '../core/errors.ts';
import { fromJson } from '../core/json.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../core/limits.ts';
import type { Live } from '../core/live.ts';
import type { SiteEvent } from '../core/sites/site.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import type { Share } from './executor-share.ts';
import { fresh } from './live.ts';
import { noteCommand } from './request-notes.ts';
import { InvokeActionResult, paramsOf, view, waitFor } from './rpc-invoke.ts';

const SiteEventType = builder.objectRef<Live<SiteEvent>>('SiteEvent').implement({
  description:
    'A notification of a site’s host to its viewers. It is no state: whoever hears it asks for what changed.',
  extensions: { shareable: true },
  fields: (t) => ({
    name: t.string({ description: 'Its name.', resolve: ({ event }) => event.name }),
    data: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What the host sent with it.',
      resolve: ({ event }) => fromJson(event.data),
    }),
    messageId: t.id({
      description: 'The retained message: whoever may read history finds it there.',
      resolve: ({ event }) => event.messageId,
    }),
    publishedAt: t.field({
      type: 'DateTime',
      description: 'When it was retained and published.',
      resolve: ({ event }) => event.publishedAt,
    }),
    missed: t.exposeInt('missed', {
      description: 'Events dropped since the one before, because they were not taken in time.',
    }),
  }),
});

type EventsArgs = { readonly sessionId: string; readonly names?: readonly string[] | null };

/** Viewers have sessions of their own, and hear the same as far as they may hear the same names of the same site. */
const shareEvents: Share<EventsArgs, Context> = async ({ sessionId, names }, { core, who }) =>
  (await core.sites.listen(who, sessionId, names ?? null)) ?? notFound();

builder.subscriptionField('siteEvents', (t) =>
  t.field({
    type: SiteEventType,
    description:
      'Events of a session’s site, from now on, without replay. Ends with `session_inactive` when the session is over, and with `unauthenticated` when the grant or the token is.',
    args: {
      sessionId: t.arg.id({ required: true, description: 'The session.' }),
      names: t.arg.stringList({
        description: 'Only these, as far as they are granted; omitted, all that the asker may hear.',
      }),
    },
    extensions: { share: shareEvents },
    subscribe: async (_, { sessionId, names }, { core, who }) =>
      (await core.sites.subscribe(who, sessionId, names ?? null)) ?? notFound(),
    resolve: fresh,
  }),
);

const InvokeSiteActionInput = builder.inputType('InvokeSiteActionInput', {
  description: 'An action of a session’s site. The relay adds the ids of session and site to the params.',
  fields: (t) => ({
    sessionId: t.id({ required: true, description: 'The session; it must be active.' }),
    action: t.string({ required: true, description: 'One of the actions that the site and the grant allow.' }),
    params: t.field({ type: 'JSON', description: 'What the action is given: a JSON object; omitted, none.' }),
    commandId: t.id({
      description:
        'The caller’s own id, which makes the call safe to repeat by the same grant. Omitted, the relay makes one.',
    }),
    instanceId: t.id({ description: 'The host’s instance that must be the live one; omitted, any.' }),
    waitFor: t.field(waitFor),
    connectWithinMs: t.int({
      required: true,
      defaultValue: CONNECT_WITHIN_MS.default,
      description: `How long it may wait for a host that goes away in between, ${CONNECT_WITHIN_MS.min} to ${CONNECT_WITHIN_MS.max} milliseconds.`,
      extensions: { minimum: CONNECT_WITHIN_MS.min, maximum: CONNECT_WITHIN_MS.max },
    }),
    respondWithinMs: t.int({
      required: true,
      defaultValue: RESPOND_WITHIN_MS.default,
      description: `How long the host may take, ${RESPOND_WITHIN_MS.min} to ${RESPOND_WITHIN_MS.max} milliseconds.`,
      extensions: { minimum: RESPOND_WITHIN_MS.min, maximum: RESPOND_WITHIN_MS.max },
    }),
    traceId: t.string({ description: 'The caller’s trace, retained with every message of the command.' }),
    parentSpanId: t.string({ description: 'The caller’s span, retained likewise.' }),
  }),
});

builder.mutationField('invokeSiteAction', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Invokes an allowed action on the host of a session’s site, and waits for what was asked to wait for. From admission on it is a command like any other, of the owner’s client.',
    args: { input: t.arg({ type: InvokeSiteActionInput, required: true, description: 'The action.' }) },
    resolve: async (_, { input: { sessionId, ...request } }, { core, who, signal, notes }) => {
      const params = paramsOf(request.params);
      const invocation = await core.sites.invoke(who, sessionId, { ...request, params, signal });
      return view(noteCommand(notes, invocation ?? notFound()), false);
    },
  }),
);
