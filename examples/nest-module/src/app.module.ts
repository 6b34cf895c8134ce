import { Module } from '@nestjs/common';
import { CallboardModule } from './callboard.module.js';
import { NotesController } from './notes.controller.js';

const { RELAY = 'http://127.0.0.1:4400' } = process.env;

@Module({
  // The token of an administrator calls for every user. Sign one per user (`signToken`) if your app knows who asks.
  imports: [CallboardModule.forRoot({ url: RELAY, token: () => process.env['TOKEN'] ?? '' })],
  controllers: [NotesController],
})
export class AppModule {}
