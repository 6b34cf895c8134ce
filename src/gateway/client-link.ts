/** Sends core's commands and cancels over a client's socket. Frames from the client do not pass through this file. */
import type { Command } from '../core/delivery/command.ts';
import type { DisconnectCause } from '../core/connections/connection.ts';
import type { ClientLink } from '../core/delivery/link.ts';
import type { JsonText } from '../core/json.ts';
import type { TraceFields } from '../core/trace-context.ts';
import { reasonOfCause } from './close.ts';
import type { Reports } from './reports.ts';
import type { FrameWriter } from './frame-writer.ts';

export interface SocketLinkOwner {
  /**
   * Called when core found that too many bytes wait to be written to the socket. The owner then tells core when fewer
   * wait.
   */
  onBehind(): void;
}

/** Core's ClientLink over a socket: sends commands and cancels to the client. */
export class SocketLink implements ClientLink {
  readonly #writer: FrameWriter;
  readonly #reports: Reports;
  readonly #owner: SocketLinkOwner;

  constructor(writer: FrameWriter, reports: Reports, owner: SocketLinkOwner) {
    this.#writer = writer;
    this.#reports = reports;
    this.#owner = owner;
  }

  sendCommand(command: Command, params: JsonText | null, remainingMs: number, trace: TraceFields | null): void {
    this.#reports.expect(command);
    const { commandId, action } = command;
    const { traceId, parentSpanId, traceFlags, traceState } = trace ?? command;
    const header = {
      type: 'command',
      command_id: commandId,
      action,
      remaining_ms: Math.max(0, Math.floor(remainingMs)),
      trace_id: traceId ?? undefined,
      parent_span_id: parentSpanId ?? undefined,
      trace_flags: traceFlags ?? undefined,
      trace_state: traceState ?? undefined,
    } as const;
    this.#writer.send(header, params);
  }

  sendCancel(commandId: string, reason: string | null): void {
    this.#writer.send({ type: 'cancel', command_id: commandId, reason: reason ?? undefined });
  }

  backlog(): number {
    if (this.#writer.behind) this.#owner.onBehind();
    return this.#writer.backlog;
  }

  close(cause: DisconnectCause, instanceId: string | null): void {
    if (cause === 'replaced' && instanceId !== null) this.#writer.send({ type: 'replaced', instance_id: instanceId });
    this.#writer.close(reasonOfCause(cause));
  }
}
