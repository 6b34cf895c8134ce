/** Defines the options with which a client process of a fault run is started. */
export type ClientOrder = {
  readonly proc: string;
  readonly boot: string;
  readonly folder: string;
  /** The address of the link: `ws://…/connect`. */
  readonly link: string;
  readonly secret: string;
  readonly clients: readonly { readonly user: string; readonly client: string }[];
  /** Whether other instances first report the unfinished commands of the previous boot. */
  readonly forging: boolean;
};
