/** Provides a caller of one relay to the whole app: inject it with `@Inject(CALLER)`. */
import { Inject, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { createHttpCaller, type Caller, type HttpCallerOptions } from 'callboard-client/caller';

export const CALLER = Symbol('the caller of the relay');

@Module({})
export class CallboardModule implements OnApplicationShutdown {
  constructor(@Inject(CALLER) private readonly caller: Caller) {}

  static forRoot(options: HttpCallerOptions): DynamicModule {
    const provider = { provide: CALLER, useFactory: () => createHttpCaller(options) };
    return { module: CallboardModule, global: true, providers: [provider], exports: [CALLER] };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.caller[Symbol.asyncDispose]();
  }
}
