/** Bounds the nesting of a document before it is parsed. */
import { GraphQLError, Lexer, Source, TokenKind } from 'graphql';

const OPENS: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSES: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/**
 * Whether braces, brackets and parentheses nest deeper than `most` within the first `tokens` tokens. Called before a
 * document is parsed, because the parser recurses into each of them and would overflow the stack. Returns false when
 * the text stops being GraphQL earlier: the parser stops at the same place and reports the error.
 */
export function isNestedDeeper(source: string | Source, most: number, tokens: number): boolean {
  const lexer = new Lexer(typeof source === 'string' ? new Source(source) : source);
  let depth = 0;
  try {
    for (let seen = 0; seen <= tokens; seen++) {
      const { kind } = lexer.advance();
      if (kind === TokenKind.EOF) return false;
      if (OPENS.has(kind)) depth++;
      else if (CLOSES.has(kind)) depth--;
      if (depth > most) return true;
    }
    return false;
  } catch (error) {
    if (error instanceof GraphQLError) return false;
    throw error;
  }
}
