/** The interface of ingestion. Types only. */
import type { Principal } from '../auth/principal.ts';
import type { Code, InputError } from '../errors.ts';
import type { JsonText } from '../json.ts';
import type { ProjectionRefusal } from '../sites/projector.ts';

/** A message as its sender gives it. Its user is the authenticated user. */
export type IngestMessage = {
  /**
   * The id of the message, which makes it safe to send again: a repeated id is a duplicate. If absent, the relay
   * generates one.
   */
  readonly messageId?: string | null | undefined;
  /** The kind of the message. Only `event` can be ingested. */
  readonly kind: string;
  /**
   * The part of the stream's key after the user: 1 to 8 ids joined by `/`, none of them `.` or `..`, not under
   * `clients/`.
   */
  readonly streamSuffix: string;
  readonly clientId: string;
  readonly instanceId: string;
  readonly traceId?: string | null | undefined;
  readonly parentSpanId?: string | null | undefined;
  readonly payload: JsonText | null;
};

/** Why a message was not retained. */
export type IngestError = { readonly code: Code; readonly message: string; readonly errors: readonly InputError[] };

/**
 * The result for one message. A retained message need not be published: `refusedBy` names the projection rule that it
 * did not meet.
 */
export type IngestVerdict = {
  /** The id of the retained message. For a refused message, the given id if it is valid, else null. */
  readonly messageId: string | null;
  /** The full key of its stream; null if the suffix is invalid. */
  readonly stream: string | null;
  readonly retained: boolean;
  /**
   * Whether the message was ingested before, within the deduplicator's TTL. A duplicate is only counted: it is neither
   * retained nor published again.
   */
  readonly duplicate: boolean;
  readonly published: boolean;
  readonly refusedBy: ProjectionRefusal | null;
  readonly error: IngestError | null;
};

/**
 * The only way to ingest events. A message is authenticated, assigned to the sender's own user, deduplicated and
 * retained in one atomic act, and then projected.
 */
export interface Ingest {
  /**
   * Ingests messages for a user with scope `host`. Returns one verdict per message, in the order sent. A refused
   * message does not affect the others. Throws if the requester is not authorized, and for fewer than 1 or more than
   * 100 messages.
   */
  ingest(requester: Principal | null, messages: readonly IngestMessage[]): Promise<readonly IngestVerdict[]>;
  /** Does the same as `ingest`, for one message. A fault of the message does not reject: the verdict reports it. */
  ingestCooperativeSiteMessage(requester: Principal | null, message: IngestMessage): Promise<IngestVerdict>;
}
