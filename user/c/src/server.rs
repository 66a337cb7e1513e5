//! Servers: who answers is a function of C.

use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::Notification;
use sandglass::Received;
use sandglass_sharing::blocking::{self, Device, Outcome, Ticket};
use sandglass_sharing::spawning::{self, Meter};
use sandglass_sharing::{self as sharing, workers};

use crate::environment::{self, Capability};
use crate::foreign::{Context, Elements, Text};
use crate::message::{Message, Request};

/// Answers a request.
pub type Handler = extern "C" fn(request: *const Request, context: Context) -> Message;

fn answer(handler: Handler, context: Context, request: Received) -> sandglass::Message {
    let request = Request::from(request);
    handler(&raw const request, context).into()
}

#[no_mangle]
pub extern "C" fn sg_serve(name: Text, handler: Handler, context: Context) -> ! {
    let env = environment::get();
    sharing::serve(env, name.text(), |request| {
        answer(handler, context, request)
    })
}

#[no_mangle]
pub extern "C" fn sg_serve_watched(name: Text, handler: Handler, context: Context) -> ! {
    let env = environment::get();
    env.service(name.text())
        .serve_watched(env.watchdog(), |request| answer(handler, context, request))
}

#[no_mangle]
pub extern "C" fn sg_serve_workers(
    name: Text,
    others: Elements<Text>,
    count: usize,
    handler: Handler,
    context: Context,
) -> ! {
    let others: Vec<&str> = others.slice(count).iter().map(|name| name.text()).collect();
    let handle = move |request| answer(handler, context, request);
    workers::serve(environment::get(), name.text(), &others, handle)
}

#[no_mangle]
pub extern "C" fn sg_serve_spawning(name: Text, handler: Handler, context: Context) -> ! {
    static METER: Meter = Meter::new();
    let handle = move |request| answer(handler, context, request);
    spawning::serve(environment::get(), name.text(), &METER, handle)
}

/// What a server of a device does.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceFunctions {
    pub request: extern "C" fn(
        request: *const Request,
        ticket: u64,
        answer: *mut Message,
        context: Context,
    ) -> bool,
    pub interrupt: extern "C" fn(completions: *mut Completions, context: Context),
    pub context: Context,
}

/// The requests that an interrupt may complete. C has pointers to it only.
pub struct Completions<'c> {
    complete: &'c mut dyn FnMut(Ticket, sandglass::Message),
    tickets: &'c [Ticket],
}

struct ForeignDevice {
    functions: DeviceFunctions,
    /// By number, as C knows them.
    tickets: Vec<Ticket>,
}

impl Device for ForeignDevice {
    fn request(&mut self, request: Received, ticket: Ticket) -> Outcome {
        let number = match self.tickets.iter().position(|known| *known == ticket) {
            Some(number) => number,
            None => {
                self.tickets.push(ticket);
                self.tickets.len() - 1
            }
        };
        let request = Request::from(request);
        let mut answer = Message::default();
        let functions = self.functions;
        let is_answered = (functions.request)(
            &raw const request,
            number as u64,
            &raw mut answer,
            functions.context,
        );
        match is_answered {
            true => Outcome::Answer(answer.into()),
            false => Outcome::Later,
        }
    }

    fn interrupt(&mut self, complete: &mut dyn FnMut(Ticket, sandglass::Message)) {
        let mut completions = Completions {
            complete,
            tickets: &self.tickets,
        };
        (self.functions.interrupt)((&raw mut completions).cast(), self.functions.context);
    }
}

#[no_mangle]
pub extern "C" fn sg_serve_device(
    name: Text,
    interrupt: Capability,
    functions: Option<&DeviceFunctions>,
) -> ! {
    let mut device = ForeignDevice {
        functions: *functions.expect("`sg_serve_device` needs its functions"),
        tickets: Vec::with_capacity(64),
    };
    let interrupt = Notification::at(interrupt);
    let never: Result<Infallible, _> =
        blocking::serve(environment::get(), name.text(), interrupt, &mut device);
    match never {
        Ok(never) => match never {},
        Err(error) => panic!("`sg_serve_device`: {error}"),
    }
}

#[no_mangle]
pub extern "C" fn sg_complete(
    completions: Option<&mut Completions<'_>>,
    ticket: u64,
    answer: Message,
) -> bool {
    let Some(completions) = completions else {
        return false;
    };
    let ticket = completions.tickets.get(ticket as usize).copied();
    if let Some(ticket) = ticket {
        (completions.complete)(ticket, answer.into());
    }
    ticket.is_some()
}
