/** Splits a report of contexts and windows into payloads that fit into frames. */
import { byteLength } from './limits.ts';
import type { Part } from './report-state.ts';

export type ReportKind = 'contexts' | 'windows';
export type Parts = Readonly<Partial<Record<ReportKind, Part | null>>>;

type Piece = { readonly kind: ReportKind; readonly list: 'set' | 'removed'; readonly json: string };
type Draft = { bytes: number; readonly pieces: Piece[]; readonly snapshots: ReadonlySet<ReportKind> };

const KINDS: readonly ReportKind[] = ['contexts', 'windows'];
/** The number of bytes of a frame that are reserved for the header and for the JSON around the rows. */
const AROUND_BYTES = 256;

/**
 * Splits the parts into the payloads of one or more reports, in order. A large snapshot continues in the next reports.
 */
export function reportPayloads(parts: Parts, maxFrameBytes: number): readonly string[] {
  const present = KINDS.filter((kind) => parts[kind]);
  let draft = begin(present.filter((kind) => parts[kind]?.snapshot));
  const payloads: string[] = [];
  for (const piece of present.flatMap((kind) => piecesOf(kind, parts[kind]))) {
    const bytes = byteLength(piece.json) + 1;
    if (draft.pieces.length > 0 && draft.bytes + bytes > maxFrameBytes) {
      payloads.push(payloadOf(draft));
      draft = begin([]);
    }
    draft.pieces.push(piece);
    draft.bytes += bytes;
  }
  return present.length === 0 ? [] : [...payloads, payloadOf(draft)];
}

function begin(snapshots: readonly ReportKind[]): Draft {
  return { bytes: AROUND_BYTES, pieces: [], snapshots: new Set(snapshots) };
}

function piecesOf(kind: ReportKind, part: Part | null | undefined): Piece[] {
  const removed = (part?.removed ?? []).map((id) => ({ kind, list: 'removed' as const, json: JSON.stringify(id) }));
  const set = (part?.set ?? []).map((json) => ({ kind, list: 'set' as const, json }));
  return [...removed, ...set];
}

function payloadOf({ pieces, snapshots }: Draft): string {
  const parts = KINDS.flatMap((kind) => {
    const own = pieces.filter((piece) => piece.kind === kind);
    const members = [
      ...(snapshots.has(kind) ? ['"snapshot":true'] : []),
      ...(['set', 'removed'] as const).flatMap((list) => listOf(own, list)),
    ];
    return members.length === 0 ? [] : [`"${kind}":{${members.join(',')}}`];
  });
  return `{${parts.join(',')}}`;
}

function listOf(pieces: readonly Piece[], list: Piece['list']): string[] {
  const json = pieces.filter((piece) => piece.list === list).map((piece) => piece.json);
  return json.length === 0 ? [] : [`"${list}":[${json.join(',')}]`];
}
