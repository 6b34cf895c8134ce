/** Defines the details of a row in the history of links: a link of a client opened or ended. */
import type { LinkDetails } from '../../core/connections/link-row.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum, DisconnectCauseEnum } from './connections.ts';
import { fieldsOf, float, id, nullable, typed } from './fields.ts';

export const LinkDetailsType = builder.objectRef<LinkDetails>('LinkDetails').implement({
  description: 'A client link that opened or ended. It holds nothing that the client said, except its type.',
  fields: fieldsOf(() => ({
    clientType: typed(ClientTypeEnum, 'What kind of program the client is.'),
    nodeId: id('The id of the node that held the link.'),
    epoch: float(
      'The epoch of the link, a whole number. It grows with each link of the client; the rows of its opening and of its end have the same one.',
    ),
    cause: nullable.typed(
      DisconnectCauseEnum,
      'Why the link ended. Of a link that opened: why the client’s previous link had ended, REPLACED if it was still up; null if the relay remembered none.',
    ),
    closeCode: nullable.int(
      'Of a link that ended: the code of the client’s close frame; null if it sent no close frame or none with a code, and for a link that opened.',
    ),
    openMs: nullable.float(
      'How long the link is known to have been open, in milliseconds: of a link that was lost with its node, until the client’s last sign of life or the end of the node’s lease. Null for a link that opened.',
    ),
    previousInstanceId: nullable.id(
      'Of a link that opened: the id of the instance that the client’s previous link belonged to; null if the relay remembered none.',
    ),
  })),
});
