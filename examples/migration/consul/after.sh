#!/bin/sh
exec neli run --group invoicing -- ./send-invoices --all
