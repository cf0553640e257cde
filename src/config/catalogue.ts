/** What a database says about its tables: enough to propose a configuration. */
export interface Catalogue {
  readonly tables: readonly CatalogueTable[];
}

export interface CatalogueTable {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly CatalogueColumn[];
  /** Empty when there is none, as for a view. */
  readonly primaryKey: readonly string[];
  /** Other unique keys, without partial ones and those over expressions. */
  readonly uniqueKeys: readonly (readonly string[])[];
}

export interface CatalogueColumn {
  readonly name: string;
  /** The type in the words of the database: `character varying(40)`. */
  readonly native: string;
  readonly nullable: boolean;
  /** The database makes the value up (serial, identity, random uuid), so the other side will not have the same. */
  readonly generated: boolean;
}
