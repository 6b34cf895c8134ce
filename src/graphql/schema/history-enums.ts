/** The enums of messages: their kinds, their order, and what is shown of their payloads. */
import type { MessageKind, PayloadState } from '../../core/history/message.ts';
import type { MessageOrder } from '../../core/history/store.ts';
import { wireEnum } from './enums.ts';

export const MessageKindEnum = wireEnum<MessageKind>('MessageKind', 'What a retained message records.', {
  command: 'A command was admitted.',
  progress: 'A client reported progress. At most one such row per second is kept for a command.',
  result: 'A client reported a result.',
  error: 'A command ended without a result.',
  cancel: 'A cancellation was requested.',
  event: 'An event was ingested.',
  late_result:
    'An end was reported after the command had ended, or by another instance than the command’s own. It is evidence and resolves nothing.',
  link_opened: 'A client link opened. Only in the stream `<user>/links`.',
  link_closed:
    'A client link ended, and no newer link of the client had taken over. Only in the stream `<user>/links`.',
  link_replaced:
    'A newer link of the same client took over from a link that was up. Only in the stream `<user>/links`.',
});

export const MessageOrderEnum = wireEnum<MessageOrder>('MessageOrder', 'The order in which messages are listed.', {
  oldest_first: 'Oldest first: the order in which messages were retained.',
  newest_first: 'Newest first. Messages that are retained after the first page was read appear on no later page.',
});

export const PayloadStateEnum = wireEnum<PayloadState>(
  'PayloadState',
  'What `payload` shows, or why it shows nothing.',
  {
    redacted:
      'There is a payload, but it was not requested, or the answer already holds 16 MiB of payloads from the store for large payloads: request fewer messages.',
    included: 'The payload is shown.',
    spilled_included: 'The payload is shown; it was read from the store for large payloads.',
    expired: 'The payload was in the store for large payloads and has expired.',
    unavailable:
      'The payload belongs in the store for large payloads and cannot be read: it could not be stored, or it was lost or damaged. Only its size and digest are known.',
    none: 'There is no payload.',
  },
);
