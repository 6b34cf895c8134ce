/** Defines what viewers of a site may do: subscribe to the site's events and invoke its actions. */
import { notFound } from '../../core/errors.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import type { SiteEvent } from '../../core/sites/site.ts';
import { noteCommand, spanNoter } from '../../web/request-notes.ts';
import { builder, ranged } from './builder.ts';
import { InvokeActionResult, PARENT_SPAN_ID, TRACE_ID, view, waitFor } from './calls.ts';
import { fieldsOf, fieldsOfPart, id, int, nullable, text, time } from './fields.ts';
import { answered } from './refusal.ts';
import { textOfJson } from './scalars.ts';
import { fresh, type Share } from './subscription-fields.ts';

const SiteEventType = builder.objectRef<LiveEvent<SiteEvent>>('SiteEvent').implement({
  description:
    'A notification from a site’s host to its viewers. It is not state: a viewer that receives it queries what changed.',
  extensions: { shareable: true },
  fields: fieldsOf((t) => ({
    ...fieldsOfPart(t, 'event', {
      name: text('The event’s name.'),
      data: nullable.json('The data that the host sent with the event; null if it sent none.'),
      messageId: id('The id of the retained message, for requesters that may read the history.'),
      publishedAt: time('When the event was retained and published.'),
    }),
    missed: int(
      'At least how many events were lost since the previous one: those that the subscriber read too slowly, and one for each interruption between the relay and other relays.',
    ),
  })),
});

type EventsArgs = { readonly sessionId: string; readonly names?: readonly string[] | null };

/**
 * Viewers of different sessions share one stream of events if the same event names of the same site are visible to
 * them.
 */
const shareEvents: Share<EventsArgs> = async ({ sessionId, names }, { core, requester }) =>
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
      ...ranged(CONNECT_WITHIN_MS),
      description: `How long the command may wait for a host that disconnects after the call was accepted, ${CONNECT_WITHIN_MS.min} to ${CONNECT_WITHIN_MS.max} milliseconds.`,
    }),
    respondWithinMs: t.int({
      ...ranged(RESPOND_WITHIN_MS),
      description: `How long the host may take, ${RESPOND_WITHIN_MS.min} to ${RESPOND_WITHIN_MS.max} milliseconds.`,
    }),
    traceId: t.string(TRACE_ID),
    parentSpanId: t.string(PARENT_SPAN_ID),
  }),
});

builder.mutationField('invokeSiteAction', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Invokes an allowed action on the host of a session’s site, and waits for what `waitFor` names. Once admitted, it is a command like any other, for the owner’s client.',
    args: { input: t.arg({ type: InvokeSiteActionInput, required: true, description: 'The invocation.' }) },
    resolve: (_, { input: { sessionId, ...request } }, { core, requester, signal, notes, trace }) => {
      const params = textOfJson(request.params);
      const traced = { trace, onSpan: spanNoter(notes) };
      return answered(
        () => core.sites.invoke(requester, sessionId, { ...request, params, signal, ...traced }),
        (invocation) => view(noteCommand(notes, invocation), false),
      );
    },
  }),
);
