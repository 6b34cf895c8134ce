/**
 * Declares what a viewer of a site may do: subscribe to the site's events (`siteEvents`), and invoke its actions
 * (`invokeSiteAction`).
 */
import { notFound } from '../../core/errors.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import type { SiteEvent } from '../../core/sites/site.ts';
import { builder } from './builder.ts';
import { textOfJson } from './builder-json.ts';
import type { Context } from './context.ts';
import type { Share } from './live-share.ts';
import { fresh } from './live.ts';
import { noteCommand, spanNoter } from '../../web/request-notes.ts';
import { InvokeActionResult, view, waitFor } from './rpc-invoke.ts';

const SiteEventType = builder.objectRef<LiveEvent<SiteEvent>>('SiteEvent').implement({
  description:
    'A notification from a site’s host to its viewers. It is not state: a viewer that receives it queries what changed.',
  extensions: { shareable: true },
  fields: (t) => ({
    name: t.string({ description: 'The event’s name.', resolve: ({ event }) => event.name }),
    data: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The data that the host sent with the event; null if it sent none.',
      resolve: ({ event }) => event.data,
    }),
    messageId: t.id({
      description: 'The id of the retained message, for requesters that may read the history.',
      resolve: ({ event }) => event.messageId,
    }),
    publishedAt: t.field({
      type: 'DateTime',
      description: 'When the event was retained and published.',
      resolve: ({ event }) => event.publishedAt,
    }),
    missed: t.exposeInt('missed', {
      description:
        'At least how many events were lost since the previous one: those that the subscriber read too slowly, and one for each interruption between the relay and other relays.',
    }),
  }),
});

type EventsArgs = { readonly sessionId: string; readonly names?: readonly string[] | null };

/**
 * Viewers of different sessions share one stream of events if they may receive the same event names of the same site.
 */
const shareEvents: Share<EventsArgs, Context> = async ({ sessionId, names }, { core, requester }) =>
  (await core.sites.listen(requester, sessionId, names ?? null)) ?? notFound();

builder.subscriptionField('siteEvents', (t) =>
  t.field({
    type: SiteEventType,
    description:
      'Events of a session’s site, from now on, without replay. Ends with `session_inactive` when the session ends, and with `unauthenticated` when the grant or the token ends.',
    args: {
      sessionId: t.arg.id({ required: true, description: 'The session’s id.' }),
      names: t.arg.stringList({
        description:
          'Only events with these names, as far as they are granted. Omitted: all that the requester may receive.',
      }),
    },
    extensions: { share: shareEvents },
    subscribe: async (_, { sessionId, names }, { core, requester }) =>
      (await core.sites.subscribe(requester, sessionId, names ?? null)) ?? notFound(),
    resolve: fresh,
  }),
);

const InvokeSiteActionInput = builder.inputType('InvokeSiteActionInput', {
  description:
    'An invocation of an action of a session’s site. The relay adds the ids of the session and the site to the params.',
  fields: (t) => ({
    sessionId: t.id({ required: true, description: 'The session’s id. The session must be active.' }),
    action: t.string({ required: true, description: 'The name of an action that the site and the grant allow.' }),
    params: t.field({ type: 'JSON', description: 'The action’s arguments, a JSON object. Omitted: none.' }),
    commandId: t.id({
      description:
        'The caller’s own id for the command, which makes the call safe to repeat with the same grant. Omitted: the relay generates one.',
    }),
    instanceId: t.id({ description: 'The id of the host’s instance that must be live. Omitted: any instance.' }),
    waitFor: t.field(waitFor),
    connectWithinMs: t.int({
      required: true,
      defaultValue: CONNECT_WITHIN_MS.default,
      description: `How long the command may wait for a host that disconnects after the call was accepted, ${CONNECT_WITHIN_MS.min} to ${CONNECT_WITHIN_MS.max} milliseconds.`,
      extensions: { minimum: CONNECT_WITHIN_MS.min, maximum: CONNECT_WITHIN_MS.max },
    }),
    respondWithinMs: t.int({
      required: true,
      defaultValue: RESPOND_WITHIN_MS.default,
      description: `How long the host may take, ${RESPOND_WITHIN_MS.min} to ${RESPOND_WITHIN_MS.max} milliseconds.`,
      extensions: { minimum: RESPOND_WITHIN_MS.min, maximum: RESPOND_WITHIN_MS.max },
    }),
    traceId: t.string({
      description:
        'The caller’s trace id, retained with every message of the command. If neither this nor `parentSpanId` is given, the HTTP headers `traceparent` and `tracestate` (W3C Trace Context) apply; without them there is none.',
    }),
    parentSpanId: t.string({
      description: 'The caller’s span id, retained with every message of the command. Omitted: as for `traceId`.',
    }),
  }),
});

builder.mutationField('invokeSiteAction', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Invokes an allowed action on the host of a session’s site, and waits for what `waitFor` names. Once admitted, it is a command like any other, for the owner’s client.',
    args: { input: t.arg({ type: InvokeSiteActionInput, required: true, description: 'The invocation.' }) },
    resolve: async (_, { input: { sessionId, ...request } }, { core, requester, signal, notes, trace }) => {
      const params = textOfJson(request.params);
      const traced = { trace, onSpan: spanNoter(notes) };
      const invocation = await core.sites.invoke(requester, sessionId, { ...request, params, signal, ...traced });
      return view(noteCommand(notes, invocation ?? notFound()), false);
    },
  }),
);
