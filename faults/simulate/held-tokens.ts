/** The tokens of people in a simulation: those of programs with links, and those for requests over HTTP. */
import type { Scope } from '../../src/core/auth/principal.ts';
import { pick } from '../lib/random.ts';
import { identifiedToken } from './entry.ts';
import { START } from './process.ts';
import type { TokenWish } from './programs.ts';
import type { Simulation } from './virtual.ts';

/** A token that somebody holds. Times in epoch milliseconds; `expiresAt` is Infinity if it does not expire. */
export type HeldToken = {
  readonly text: string;
  readonly userId: string;
  readonly id: string | null;
  readonly issuedAt: number | null;
  readonly expiresAt: number;
};

/** How many tokens a user holds for requests over HTTP at most, and how often it takes a new one before. */
const HOLDING = 3;
const ANOTHER = 0.3;
/** The part of the tokens that do not say when they were issued. */
const UNDATED = 0.1;
const SCOPES: readonly Scope[] = ['connect', 'invoke', 'host'];

export class HeldTokens {
  readonly #simulation: Simulation;
  readonly #all = new Map<string, HeldToken>();
  readonly #ofProgram = new Map<string, HeldToken[]>();
  readonly #held: HeldToken[] = [];

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  /** All tokens, in the order of their issue. */
  get all(): readonly HeldToken[] {
    return [...this.#all.values()];
  }

  /** Those for requests over HTTP, in the order of their issue. */
  get ofRequests(): readonly HeldToken[] {
    return this.#held;
  }

  byText(text: string): HeldToken | undefined {
    return this.#all.get(text);
  }

  /** Issues a token to a program. */
  forProgram(program: string, wish: TokenWish): HeldToken {
    const token = this.#issue(wish);
    this.#ofProgram.set(program, [...(this.#ofProgram.get(program) ?? []), token]);
    return token;
  }

  /** The last two tokens of a program: that of its link, and one that the relay may not have accepted yet. */
  ofProgram(program: string): readonly HeldToken[] {
    return (this.#ofProgram.get(program) ?? []).slice(-2);
  }

  /** A token of a user for requests over HTTP: one that it holds and that is usable, or a new one. */
  forRequest(userId: string, isUsable: (token: HeldToken) => boolean): HeldToken {
    const { random } = this.#simulation;
    const own = this.#held.filter((token) => token.userId === userId && isUsable(token));
    if (own.length >= HOLDING || (own.length > 0 && random() >= ANOTHER)) return pick(random, own);
    const token = this.#issue({ userId, scopes: SCOPES, ms: Infinity });
    this.#held.push(token);
    return token;
  }

  /** Issues a token by the clock of the issuer, which counts whole seconds. */
  #issue({ userId, scopes, ms }: TokenWish): HeldToken {
    const { now, random } = this.#simulation;
    const at = START + Math.floor(now);
    const issuedAt = random() < UNDATED ? null : Math.floor(at / 1000) * 1000;
    const token = { userId, id: `token-${this.#all.size}`, issuedAt, expiresAt: at + ms };
    const held = { ...token, text: identifiedToken({ ...token, scopes }) };
    this.#all.set(held.text, held);
    return held;
  }
}
