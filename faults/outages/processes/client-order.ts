/** What a process of clients is started with. */
export type ClientOrder = {
  readonly proc: string;
  readonly boot: string;
  readonly folder: string;
  /** `ws://…/connect` */
  readonly link: string;
  readonly secret: string;
  readonly clients: readonly { readonly user: string; readonly client: string }[];
  /** Whether others report first what the boot before had begun. */
  readonly forging: boolean;
};
