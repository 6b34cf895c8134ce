/** Adds notes at a user's kiosk. */
import {
  Body,
  ConflictException,
  Controller,
  HttpException,
  Inject,
  Param,
  Post,
  ServiceUnavailableException,
} from '@nestjs/common';
import { CallerError, type Caller } from 'callboard-client/caller';
import { CALLER } from './callboard.module.js';

@Controller('users/:userId/notes')
export class NotesController {
  constructor(@Inject(CALLER) private readonly caller: Caller) {}

  @Post()
  async add(@Param('userId') userId: string, @Body('text') text: string): Promise<unknown> {
    const target = { userId, clientId: 'kiosk-1', action: 'notes.add' };
    const answer = await this.caller.invoke(target, { text }, { respondWithinMs: 15_000 }).catch((error: unknown) => {
      throw error instanceof CallerError ? new ServiceUnavailableException(error.code) : error;
    });
    if (answer.outcome === 'completed') return answer.result;
    // It may have run. The handle finds the command again.
    if (answer.outcome === 'outcome_unknown') throw new HttpException(answer.handle, 202);
    throw new ConflictException('error' in answer ? answer.error.message : answer.outcome);
  }
}
