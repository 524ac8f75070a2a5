//! The methods of [`Backend`](crate::Backend) that a wrapper forwards without change.

/// Writes methods of [`Backend`](crate::Backend) that forward to another backend, inside an `impl Backend for` block.
///
/// The first form names one backend for all methods. The second form names a locator and chooses the backend by it; only methods
/// with a locator can be forwarded so.
///
/// A wrapper names each forwarded method and denies `clippy::missing_trait_methods`, so that it has to decide about every method of the
/// trait, the provided ones too.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use haversack_store::{Backend, InMemory, Locator, Object, Result, forward_backend};
///
/// /// Counts reads.
/// #[derive(Debug)]
/// struct CountedReads {
///     inner: Arc<dyn Backend>,
///     reads: AtomicUsize,
/// }
///
/// #[deny(clippy::missing_trait_methods)]
/// #[async_trait::async_trait]
/// impl Backend for CountedReads {
///     async fn read(&self, locator: &Locator) -> Result<Object> {
///         self.reads.fetch_add(1, Ordering::Relaxed);
///         self.inner.read(locator).await
///     }
///
///     forward_backend!(self => self.inner; write, prepare, append, barrier, list, scan, info, touch_mark, delete, rename, exchange);
///     forward_backend!(self => self.inner; mkdir, lock, capabilities, conflict_strategy);
/// }
///
/// let counted = CountedReads { inner: Arc::new(InMemory::new()), reads: AtomicUsize::new(0) };
/// # drop(counted);
/// ```
#[macro_export]
macro_rules! forward_backend {
    ($self:ident => $inner:expr; $($method:ident),+ $(,)?) => {
        $($crate::forward_backend!(@$method $self, locator, $inner);)+
    };
    ($self:ident, $locator:ident => $inner:expr; $($method:ident),+ $(,)?) => {
        $($crate::forward_backend!(@$method $self, $locator, $inner);)+
    };
    (@read $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@one read $self, $inner, $locator: &'life1 $crate::Locator; (); $crate::Object);
    };
    (@write $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(
            @one write $self, $inner, $locator: &'life1 $crate::Locator;
            (bytes: $crate::Bytes, condition: $crate::Condition); $crate::Written
        );
    };
    (@append $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(
            @one append $self, $inner, $locator: &'life1 $crate::Locator;
            (bytes: $crate::Bytes, durability: $crate::Durability); $crate::Appended
        );
    };
    (@list $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@one list $self, $inner, $locator: &'life1 $crate::Locator; (); $crate::Listing);
    };
    (@info $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@one info $self, $inner, $locator: &'life1 $crate::Locator; (); $crate::Info);
    };
    (@delete $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(
            @one delete $self, $inner, $locator: &'life1 $crate::Locator; (condition: $crate::Condition); ()
        );
    };
    (@mkdir $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@one mkdir $self, $inner, $locator: &'life1 $crate::Locator; (); ());
    };
    (@lock $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@one lock $self, $inner, name: &'life1 str; (wait: ::std::time::Duration); $crate::Guard);
    };
    (@barrier $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@none barrier $self, $inner; (); ());
    };
    (@touch_mark $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@none touch_mark $self, $inner; (); $crate::TouchMark);
    };
    (@prepare $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(
            @none prepare $self, $inner; (objects: ::std::vec::Vec<($crate::Locator, $crate::Bytes)>); ()
        );
    };
    (@rename $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@two rename $self, $inner);
    };
    (@exchange $self:ident, $locator:ident, $inner:expr) => {
        $crate::forward_backend!(@two exchange $self, $inner);
    };
    (@scan $self:ident, $locator:ident, $inner:expr) => {
        fn scan<'a>(
            &'a $self,
            $locator: &$crate::Locator,
            after: ::std::option::Option<&$crate::Locator>,
        ) -> $crate::Pages<'a> {
            $inner.scan($locator, after)
        }
    };
    (@capabilities $self:ident, $locator:ident, $inner:expr) => {
        fn capabilities(&$self) -> $crate::Capabilities {
            $inner.capabilities()
        }
    };
    (@conflict_strategy $self:ident, $locator:ident, $inner:expr) => {
        fn conflict_strategy(&$self) -> $crate::ConflictStrategy {
            $inner.conflict_strategy()
        }
    };
    // The signatures are those that `async_trait` makes of async methods: it does not see inside a macro, so we write them out. The inner
    // backend's future is returned as it is, without a second one around it.
    (@none $method:ident $self:ident, $inner:expr; ($($name:ident: $type:ty),*); $output:ty) => {
        fn $method<'life0, 'async_trait>(
            &'life0 $self,
            $($name: $type),*
        ) -> $crate::BackendFuture<'async_trait, $output>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            $inner.$method($($name),*)
        }
    };
    (@one $method:ident $self:ident, $inner:expr, $first:ident: $borrowed:ty; ($($name:ident: $type:ty),*); $output:ty) => {
        fn $method<'life0, 'life1, 'async_trait>(
            &'life0 $self,
            $first: $borrowed,
            $($name: $type),*
        ) -> $crate::BackendFuture<'async_trait, $output>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            Self: 'async_trait,
        {
            $inner.$method($first, $($name),*)
        }
    };
    (@two $method:ident $self:ident, $inner:expr) => {
        fn $method<'life0, 'life1, 'life2, 'async_trait>(
            &'life0 $self,
            from: &'life1 $crate::Locator,
            to: &'life2 $crate::Locator,
        ) -> $crate::BackendFuture<'async_trait, ()>
        where
            'life0: 'async_trait,
            'life1: 'async_trait,
            'life2: 'async_trait,
            Self: 'async_trait,
        {
            $inner.$method(from, to)
        }
    };
}
