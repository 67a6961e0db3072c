-- What a person confirms at their provider: who they are and the calls, as JSON; null = the flow signs somebody in.
ALTER TABLE oidc_flows ADD COLUMN step_up TEXT COLLATE "C";
