//! What only containers have: the engine's own view, images, the pool, a workspace out of sight.
