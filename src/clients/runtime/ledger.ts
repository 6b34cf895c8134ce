/** Remembers in memory which commands ran, so that none runs twice. */
import { byteLength, LEDGER_BYTES, LEDGER_IDS } from './limits.ts';

/** What is remembered of one command. `ended` with `text` null: the command ran, and its end is no longer kept. */
export type LedgerEntry =
  { readonly state: 'running' } | { readonly state: 'ended'; readonly text: string | null; readonly bytes: number };

/**
 * The commands that this instance ran, so that none runs twice and a repeated command is answered with its end. Bounded
 * by LEDGER_IDS ids and LEDGER_BYTES bytes of ends.
 */
export class RunLedger {
  /**
   * All remembered commands. Ended commands are in the order of their ends. A running command keeps the position that
   * it got when it began.
   */
  readonly #entries = new Map<string, LedgerEntry>();
  #bytes = 0;

  get(commandId: string): LedgerEntry | undefined {
    return this.#entries.get(commandId);
  }

  begin(commandId: string): void {
    this.#entries.set(commandId, { state: 'running' });
    this.#forgetIds();
  }

  end(commandId: string, text: string): void {
    const bytes = byteLength(text);
    this.#entries.delete(commandId);
    this.#entries.set(commandId, { state: 'ended', text, bytes });
    this.#bytes += bytes;
    this.#forgetTexts();
  }

  /** Removes the oldest ended commands above the limit; never a running one. */
  #forgetIds(): void {
    for (const [commandId, entry] of this.#entries) {
      if (this.#entries.size <= LEDGER_IDS) return;
      if (entry.state !== 'ended') continue;
      this.#entries.delete(commandId);
      this.#bytes -= entry.bytes;
    }
  }

  #forgetTexts(): void {
    for (const [commandId, entry] of this.#entries) {
      if (this.#bytes <= LEDGER_BYTES) return;
      if (entry.state !== 'ended') continue;
      this.#bytes -= entry.bytes;
      this.#entries.set(commandId, { state: 'ended', text: null, bytes: 0 });
    }
  }
}
