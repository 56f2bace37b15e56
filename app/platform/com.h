#pragma once
// Objects of Windows' libraries (COM), released with what holds them.

#include <unknwn.h>

#include <memory>

namespace canopy::app {

struct Released {
  void operator()(IUnknown* object) const { object->Release(); }
};
template <class T>
using Owned = std::unique_ptr<T, Released>;

/// An object by a call that stores it; null where that fails.
template <class T, class F>
Owned<T> obtained(F&& call) {
  T* object = nullptr;
  return Owned<T>(FAILED(call(&object)) ? nullptr : object);
}

/// Another interface of an object; null where the system's version has none.
template <class T>
Owned<T> as(IUnknown& object) {
  return obtained<T>([&](T** made) { return object.QueryInterface(__uuidof(T), reinterpret_cast<void**>(made)); });
}

}  // namespace canopy::app
