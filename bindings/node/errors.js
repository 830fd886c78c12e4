'use strict';
// One error class for each code of the library, in the order of the codes.

class HoldfastError extends Error {
  constructor(message, about = {}) {
    super(message);
    this.name = this.constructor.name;
    this.operation = about.operation ?? '';
    this.lockName = about.name ?? '';
    this.store = about.store ?? '';
    this.retryable = about.retryable ?? false;
    this.outcomeUnknown = about.outcomeUnknown ?? false;
    this.leaseGone = about.leaseGone ?? false;
  }
}

class Busy extends HoldfastError {}
class TimedOut extends HoldfastError {}
class Cancelled extends HoldfastError {}
class Lost extends HoldfastError {}
class NotOwner extends HoldfastError {}
class Unavailable extends HoldfastError {}
class Overloaded extends HoldfastError {}
class Deadlock extends HoldfastError {}
class KindMismatch extends HoldfastError {}
class CapacityMismatch extends HoldfastError {}
class Unsupported extends HoldfastError {}
class InvalidName extends HoldfastError {}
class InvalidArgument extends HoldfastError {}
class ForeignData extends HoldfastError {}
class NewerFormat extends HoldfastError {}
class Corrupt extends HoldfastError {}
class ReadOnly extends HoldfastError {}
class NoSpace extends HoldfastError {}
class NotPermitted extends HoldfastError {}
class Forked extends HoldfastError {}
class Internal extends HoldfastError {}

// In the order of the codes. Written out, so that "import {Busy} from 'holdfast'" finds them.
module.exports = {
  Busy, TimedOut, Cancelled, Lost, NotOwner, Unavailable, Overloaded, Deadlock, KindMismatch, CapacityMismatch, Unsupported,
  InvalidName, InvalidArgument, ForeignData, NewerFormat, Corrupt, ReadOnly, NoSpace, NotPermitted, Forked, Internal};

const byCode = new Map();
Object.values(module.exports).forEach((kind, index) => {
  kind.prototype.code = index + 1;
  byCode.set(index + 1, kind);
});
module.exports.HoldfastError = HoldfastError;
Object.defineProperty(module.exports, 'byCode', {value: byCode});  // for this package only
